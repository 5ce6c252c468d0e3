"""What people said, as strings: documents, tags, tokens, offsets, who the annotators are; and made-up crowds."""
