"""Calls that a type checker refuses: one that it let pass would have an unused ``ignore``, and fail the checks."""

import quorate

corpus = quorate.read("crowd.jsonl", map_lables={"PERS": "PER"})  # type: ignore[call-arg]
corpus = quorate.read("crowd.jsonl", annotator_from="file")  # type: ignore[arg-type]
layers = quorate.read_layers("crowd.jsonl", sampels="soft")  # type: ignore[call-arg]

result = quorate.aggregate(corpus, max_itre=5)  # type: ignore[call-arg]
result = quorate.aggregate(corpus, annotator="sec")  # type: ignore[arg-type]
result = quorate.aggregate(corpus, max_iter="5")  # type: ignore[arg-type]
nested = quorate.aggregate_layers(layers, temprr=0.5)  # type: ignore[call-arg]

quorate.estimator("bsc-cm", kapa0=1.0)  # type: ignore[call-arg]
quorate.fit_stream([corpus], "bsc-cm", kapa0=1.0)  # type: ignore[call-arg]
quorate.BSC(max_itre=5)  # type: ignore[call-arg]
quorate.BSC("cn")  # type: ignore[arg-type]
quorate.BSC().fit(corpus, knwon="inline")  # type: ignore[call-arg]
quorate.BSC().fit_predict(corpus, progess=None)  # type: ignore[call-arg]
quorate.CRFMA(max_itre=5)  # type: ignore[call-arg]
quorate.MajorityVote(tie="random")  # type: ignore[call-arg]
quorate.AbstainVote(ties="random")  # type: ignore[call-arg]
quorate.SpanVote(decode="token")  # type: ignore[call-arg]
quorate.BestWorker("by-lot")  # type: ignore[arg-type]
quorate.WorstWorker(n_job=1)  # type: ignore[call-arg]

# What is right passes.
settings: quorate.MethodSettings = {"annotator": "seq", "max_iter": 5, "scheme": quorate.Scheme.BIO}
result = quorate.aggregate(corpus, "bsc-seq", known="inline", progress=True, **settings)
