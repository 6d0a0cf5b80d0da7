// Package sample turns a row of logits into a token.
//
// It holds the sampling parameters and their limits, the chain of filters
// (penalties, bias, mask, top-k, tail-free, typical, top-p, min-p, temperature),
// Mirostat and contrastive decoding against n-grams, the counter-based generator
// that draws, log-probabilities, and the search for stop tokens and stop strings
// in a streamed answer. It must never import models, devices, tokenizers, the
// scheduler or the server: it sees float32 rows, token ids and text.
//
// Read Sampler first.
package sample
