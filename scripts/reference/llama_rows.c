// Prints what llama.cpp computes for a row of ids: logits of a decoder, or of an
// encoder-decoder's decoder, or an encoder's rows. Build against its headers and library:
//
//     cc -o llama_rows llama_rows.c -I LLAMA_CPP/include -I LLAMA_CPP/ggml/include -L LIB -Wl,-rpath,LIB -lllama -lggml -lggml-base
//
//     llama_rows MODEL.gguf ID… [-- ID…]
#include "llama.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void errors_only(enum ggml_log_level level, const char *text, void *user) {
    (void)user;
    if (level >= GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static struct llama_batch batch_of(int n, char **ids) {
    struct llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = atoi(ids[i]);
        b.pos[i] = i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = 0;
        b.logits[i] = 1;
    }
    return b;
}

int main(int argc, char **argv) {
    llama_log_set(errors_only, NULL);
    llama_backend_init();
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    struct llama_model *m = llama_model_load_from_file(argv[1], mp);
    if (!m) return 2;
    struct llama_context_params cp = llama_context_default_params();
    int enc = llama_model_has_encoder(m), dec = llama_model_has_decoder(m);
    cp.n_ctx = cp.n_batch = cp.n_ubatch = 256;
    cp.n_threads = cp.n_threads_batch = 1;
    cp.type_k = cp.type_v = GGML_TYPE_F32;
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    cp.pooling_type = LLAMA_POOLING_TYPE_NONE;
    struct llama_context *c = llama_init_from_model(m, cp);
    if (!c) return 3;
    int sep = 2;
    while (sep < argc && strcmp(argv[sep], "--")) sep++;
    struct llama_batch b = batch_of(sep - 2, argv + 2);
    if (enc && dec) {
        if (llama_encode(c, b)) return 4;
        b = batch_of(argc - sep - 1, argv + sep + 1);
    }
    int rows = sep == argc && dec && !enc; // a decoder's logits unless it has none
    const char *arch = getenv("LLAMA_ROWS");
    if (arch && !strcmp(arch, "embeddings")) rows = 0, llama_set_embeddings(c, 1), dec = 0;
    if (enc && dec) rows = 1;
    if (llama_decode(c, b)) return 5;
    int width = rows ? llama_vocab_n_tokens(llama_model_get_vocab(m)) : llama_model_n_embd(m);
    for (int i = 0; i < b.n_tokens; i++) {
        float *x = rows ? llama_get_logits_ith(c, i) : llama_get_embeddings_ith(c, i);
        if (!x) return 6;
        for (int k = 0; k < width; k++) printf("%.9g ", x[k]);
        printf("\n");
    }
    return 0;
}
