// Package tokenizer turns text into token ids and back. It reads what model files carry: the tokenizer.ggml.* metadata of GGUF (FromGGUF),
// tokenizer.json with tokenizer_config.json (FromJSON), and folders with any of the older forms: SentencePiece models, tiktoken files, vocab.json with
// merges.txt, vocab.txt (Open). All become the same pipeline, in the words of Hugging Face's tokenizers library, whose ids are the reference, as those of
// sentencepiece and tiktoken are for their files:
//
//	text → added tokens cut out → normalizer → pre-tokenizer (words) → model (ids) → template (BOS, EOS around)
//	ids → decoder stages, one token at a time → text, never half a rune
//
// Models: byte-pair encoding over bytes or characters with merges by rank, by score (SentencePiece) or by id; unigram; WordPiece; WordLevel; longest
// match. Which pre-tokenizer a GGUF name means, and how a class of tokenizer reads a
// folder, is data (data/pretokenizers.json, data/classes.json), not code.
//
// The package must not import anything of this module but its own subpackage pattern, the regular expressions of pre-tokenizers. Read Tokenizer first.
package tokenizer
