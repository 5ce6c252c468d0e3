/* A consensus as lines of JSON, as `formats/json_lines.py` writes them: this must make the same, byte for byte. */
#include <math.h>
#include <string.h>

#include "arrays.h"

/* As the Python types of the same names, which say what is in them. */
typedef struct {
    Ints doc_start;
    Bytes ids;
    Ints id_end;
    Ints32 word;
    Bytes words;
    Ints word_end;
    Bytes has_text, texts;
    Ints text_end;
    Ints32 offsets;
    Bytes unit;
    Ints32 split;
    Bytes splits;
    Ints split_end;
} DocumentColumns;

typedef struct {
    Ints32 path;
    Floats sure;
    Ints32 span_end;
    int64_t first_token;
    Bools known;
    Bytes document_numbers, span_numbers, labels;
    Ints label_end;
    Bytes types;
    Ints type_end;
} ConsensusColumns;

/* What offsets count: the order of Python's `Unit`. */
enum { CODE_POINTS, UTF16, CODE_POINTS_LF, UTF16_LF };

#define DECIMALS 6
#define ONE 1000000

/* Where bytes go. What does not fit is counted all the same, so that the caller knows how much room to give. */
typedef struct {
    uint8_t *at;
    int64_t used, room;
} Sink;

static inline void put(Sink *out, const void *bytes, int64_t n) {
    if (out->used + n <= out->room) memcpy(out->at + out->used, bytes, (size_t)n);
    out->used += n;
}

#define PUT(out, literal) put(out, literal, (int64_t)sizeof(literal) - 1)

static inline void put_byte(Sink *out, uint8_t byte) {
    if (out->used < out->room) out->at[out->used] = byte;
    out->used++;
}

/* Pieces that lie end to end: where number i begins. */
static inline int64_t start_of(Ints end, int64_t i) { return i ? end.at[i - 1] : 0; }

static inline void put_piece(Sink *out, Bytes bytes, Ints end, int64_t i) {
    int64_t start = start_of(end, i);
    put(out, bytes.at + start, end.at[i] - start);
}

/* A piece that is a string in quotes, without them. */
static inline void put_inside(Sink *out, Bytes bytes, Ints end, int64_t i) {
    int64_t start = start_of(end, i);
    put(out, bytes.at + start + 1, end.at[i] - start - 2);
}

static void put_integer(Sink *out, int64_t number) {
    uint8_t digits[20];
    int n = 0;
    do digits[sizeof(digits) - ++n] = (uint8_t)('0' + number % 10);
    while (number /= 10);
    put(out, digits + sizeof(digits) - n, n);
}

/* A number of millionths from 0 to a million, with as few digits as say which it is. */
static void put_millionths(Sink *out, int64_t number) {
    if (number > 0 && number < 10) { /* only these are shorter with an exponent */
        put_byte(out, (uint8_t)('0' + number));
        PUT(out, "e-6");
        return;
    }
    uint8_t digits[DECIMALS + 2] = {(uint8_t)('0' + number / ONE), '.'};
    int n = DECIMALS + 2;
    for (int place = n - 1; place >= 2; place--, number /= 10) digits[place] = (uint8_t)('0' + number % 10);
    while (n > 3 && digits[n - 1] == '0') n--;
    put(out, digits, n);
}

/* The inside of a JSON string. */
static void put_escaped(Sink *out, const uint8_t *bytes, int64_t n) {
    static const char hex[] = "0123456789abcdef";
    int64_t plain = 0; /* from here on nothing needed an escape */
    for (int64_t i = 0; i < n; i++) {
        uint8_t byte = bytes[i], letter = 0;
        if (byte >= ' ' && byte != '"' && byte != '\\') continue;
        put(out, bytes + plain, i - plain);
        plain = i + 1;
        switch (byte) {
        case '"': case '\\': letter = byte; break;
        case '\b': letter = 'b'; break;
        case '\f': letter = 'f'; break;
        case '\n': letter = 'n'; break;
        case '\r': letter = 'r'; break;
        case '\t': letter = 't'; break;
        }
        put_byte(out, '\\');
        if (letter) {
            put_byte(out, letter);
        } else {
            PUT(out, "u00");
            put_byte(out, (uint8_t)hex[byte >> 4]);
            put_byte(out, (uint8_t)hex[byte & 15]);
        }
    }
    put(out, bytes + plain, n - plain);
}

static void put_string(Sink *out, const uint8_t *bytes, int64_t n) {
    put_byte(out, '"');
    put_escaped(out, bytes, n);
    put_byte(out, '"');
}

/* The next of some numbers that are written one after another, with a comma or bracket behind each. */
static void put_next(Sink *out, Bytes numbers, int64_t *place) {
    int64_t first = *place;
    while (*place < numbers.n && numbers.at[*place] != ',' && numbers.at[*place] != ']') ++*place;
    put(out, numbers.at + first, *place - first);
    ++*place;
}

/* A place in a text: so many code points, and how many bytes and units those are. */
typedef struct {
    const uint8_t *text;
    int64_t n, unit, point, byte, measured;
} Place;

/* Go to a code point; behind the last one, code points go on being counted, as Python counts them. */
static void go_to(Place *at, int64_t point) {
    if (point < at->point) at->point = at->byte = at->measured = 0;
    for (; at->point < point && at->byte < at->n; at->point++) {
        uint8_t lead = at->text[at->byte];
        bool is_wide = lead >= 0xF0 && (at->unit == UTF16 || at->unit == UTF16_LF);
        bool is_joined = lead == '\r' && (at->unit == CODE_POINTS_LF || at->unit == UTF16_LF) && at->byte + 1 < at->n &&
                         at->text[at->byte + 1] == '\n';
        at->measured += 1 + is_wide - is_joined;
        at->byte += lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    }
    at->measured += point - at->point;
    at->point = point;
}

static void put_tokens(Sink *out, const DocumentColumns *columns, int64_t first, int64_t last) {
    for (int64_t t = first; t < last; t++) {
        if (t > first) put_byte(out, ',');
        put_piece(out, columns->words, columns->word_end, columns->word.at[t]);
    }
}

/* Whether the tags of some tokens were all given as known. */
static bool all_known(const ConsensusColumns *consensus, int64_t first, int64_t last) {
    for (int64_t t = first; t < last; t++)
        if (!consensus->known.n || !consensus->known.at[t]) return false;
    return last > first;
}

static void put_span(Sink *out, const DocumentColumns *columns, const ConsensusColumns *consensus, int64_t begin,
                     int64_t end, int64_t doc_start, Place *text, int64_t *span_number) {
    int64_t from = begin - doc_start, to = end - doc_start, first_byte = 0;
    if (text != NULL) {
        go_to(text, columns->offsets.at[2 * begin]);
        from = text->measured;
        first_byte = text->byte;
        go_to(text, columns->offsets.at[2 * (end - 1) + 1]);
        to = text->measured;
    }
    PUT(out, "{\"start\":");
    put_integer(out, from);
    PUT(out, ",\"end\":");
    put_integer(out, to);
    PUT(out, ",\"label\":");
    put_piece(out, consensus->types, consensus->type_end, consensus->path.at[begin]);
    PUT(out, ",\"confidence\":");
    put_next(out, consensus->span_numbers, span_number);
    PUT(out, ",\"text\":\"");
    if (text != NULL) {
        put_escaped(out, text->text + first_byte, most_of(text->byte - first_byte, 0));
        PUT(out, "\",\"token_start\":");
        put_integer(out, begin - doc_start);
        PUT(out, ",\"token_end\":");
        put_integer(out, end - doc_start);
    } else {
        for (int64_t t = begin; t < end; t++) {
            if (t > begin) put_byte(out, ' ');
            put_inside(out, columns->words, columns->word_end, columns->word.at[t]);
        }
        put_byte(out, '"');
    }
}

/* Where the document's tokens stand, and the part of the corpus that it belongs to. */
static void put_place(Sink *out, const DocumentColumns *columns, int64_t d, int64_t first, int64_t last) {
    static const char *const names[] = {"code-points", "utf-16", "code-points-lf", "utf-16-lf"};
    if (columns->has_text.at[d]) {
        int64_t start = start_of(columns->text_end, d);
        PUT(out, ",\"text\":");
        put_string(out, columns->texts.at + start, columns->text_end.at[d] - start);
        PUT(out, ",\"offsets\":[");
        for (int64_t t = first; t < last; t++) {
            if (t > first) put_byte(out, ',');
            put_byte(out, '[');
            put_integer(out, columns->offsets.at[2 * t]);
            put_byte(out, ',');
            put_integer(out, columns->offsets.at[2 * t + 1]);
            put_byte(out, ']');
        }
        put_byte(out, ']');
    }
    if (columns->unit.n && columns->unit.at[d] != CODE_POINTS) {
        const char *name = names[columns->unit.at[d] & 3];
        PUT(out, ",\"offset_unit\":\"");
        put(out, name, (int64_t)strlen(name));
        put_byte(out, '"');
    }
    if (columns->split.at[d] >= 0) {
        PUT(out, ",\"split\":");
        put_piece(out, columns->splits, columns->split_end, columns->split.at[d]);
    }
}

/* The strings of an array in JSON, end to end without what stands between them, and where each ends; returns how many
 * there are, and what else is in the array is left out. */
KERNEL int64_t split_strings(Bytes json, Bytes strings, Ints end) {
    int64_t count = 0, used = 0;
    for (int64_t i = 0; i < json.n && count < end.n; i++) {
        if (json.at[i] != '"') continue;
        int64_t first = i++;
        while (i < json.n && json.at[i] != '"') i += json.at[i] == '\\' ? 2 : 1;
        int64_t length = least_of(i + 1, json.n) - first;
        memcpy(strings.at + used, json.at + first, (size_t)length);
        used += length;
        end.at[count++] = used;
    }
    return count;
}

/* One line a document, into `out`; returns how many bytes they are. Where that is more than there is room for, not all
 * of them are there. */
KERNEL int64_t fill_lines(const DocumentColumns *columns, const ConsensusColumns *consensus, Bytes out) {
    Sink sink = {out.at, 0, out.n}, *to = &sink;
    int64_t document_number = 0, span_number = 0;
    for (int64_t d = 0; d + 1 < columns->doc_start.n; d++) {
        int64_t first = columns->doc_start.at[d], last = columns->doc_start.at[d + 1], id = start_of(columns->id_end, d);
        PUT(to, "{\"id\":");
        put_string(to, columns->ids.at + id, columns->id_end.at[d] - id);
        PUT(to, ",\"tokens\":[");
        put_tokens(to, columns, first, last);
        PUT(to, "],\"tags\":[");
        for (int64_t t = first; t < last; t++) {
            if (t > first) put_byte(to, ',');
            put_piece(to, consensus->labels, consensus->label_end, consensus->path.at[t]);
        }
        PUT(to, "],\"confidence\":");
        put_next(to, consensus->document_numbers, &document_number);
        PUT(to, ",\"token_confidence\":[");
        for (int64_t t = first; t < last; t++) {
            if (t > first) put_byte(to, ',');
            put_millionths(to, lrint(consensus->sure.at[t] * ONE));
        }
        PUT(to, "],\"spans\":[");
        bool is_known = all_known(consensus, first, last), is_first = true;
        int64_t start = start_of(columns->text_end, d);
        Place text = {columns->texts.at + start, columns->text_end.at[d] - start, 0, 0, 0, 0};
        if (columns->unit.n) text.unit = columns->unit.at[d];
        for (int64_t t = first; t < last; t++) {
            int64_t end = consensus->span_end.at[t] - consensus->first_token;
            if (!consensus->span_end.at[t]) continue;
            if (!is_first) put_byte(to, ',');
            is_first = false;
            put_span(to, columns, consensus, t, end, first, columns->has_text.at[d] ? &text : NULL, &span_number);
            if (!is_known && all_known(consensus, t, end)) PUT(to, ",\"known\":true");
            put_byte(to, '}');
        }
        put_byte(to, ']');
        if (is_known) PUT(to, ",\"known\":true");
        put_place(to, columns, d, first, last);
        PUT(to, "}\n");
    }
    return sink.used;
}
