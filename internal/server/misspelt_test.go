package server

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/spec"
)

// clientFields are what clients send to one server or another at the addresses
// that are served here.
var clientFields = strings.Fields(`
	audio best_of dimensions echo encoding_format frequency_penalty function_call functions input logit_bias logprobs max_completion_tokens max_tokens messages
	metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt prompt_cache_key prompt_cache_retention reasoning_effort
	response_format safety_identifier seed service_tier stop store stream stream_options suffix temperature tool_choice tools top_logprobs top_p user verbosity
	web_search_options reasoning include instructions text truncation background conversation previous_response_id extra_body extra_headers extra_query timeout

	add_generation_prompt add_special_tokens allowed_token_ids bad_words cache_salt chat_template chat_template_kwargs continue_final_message documents
	guided_decoding_backend guided_whitespace_pattern ignore_eos include_reasoning include_stop_str_in_output kv_transfer_params length_penalty logits_processors
	media_io_kwargs min_p min_tokens mm_processor_kwargs priority prompt_embeds prompt_logprobs repetition_detection repetition_penalty request_id return_token_ids
	return_token_strs return_tokens_as_token_ids skip_special_tokens spaces_between_special_tokens stop_token_ids structured_outputs thinking_token_budget top_k
	truncate_prompt_tokens truncation_side use_beam_search vllm_xargs activation additional_data data embed_dtype endianness normalize pooling queries softmax
	task text_1 text_2 use_activation

	adaptive_decay adaptive_target backend_sampling cache_prompt chat_format content dry_allowed_length dry_base dry_multiplier dry_penalty_last_n
	dry_sequence_breakers dynatemp_exponent dynatemp_range embd_normalize generation_prompt grammar grammar_lazy grammar_triggers id_slot image_data input_extra
	input_prefix input_suffix json_schema lora min_keep mirostat mirostat_eta mirostat_tau n_cmpl n_discard n_indent n_keep n_predict n_probs parse_special
	parse_tool_calls penalize_nl post_sampling_probs preserved_tokens reasoning_format reasoning_in_content repeat_last_n repeat_penalty response_fields
	return_progress return_tokens samplers slot_id stopping_word t_max_predict_ms t_max_prompt_ms tfs_z thinking_budget_tokens thinking_forced_open timings_per_token
	top_n_sigma typ_p typical_p with_pieces xtc_probability xtc_threshold add_special tokens

	draft_model format images keep_alive num_batch num_ctx num_gpu num_keep num_predict num_thread options raw system template think ttl use_mlock use_mmap

	custom_logit_processor custom_params ebnf extra_key input_embeds input_ids lora_path no_stop_trim regex return_hidden_states return_logprob rid sampling_params
	separate_reasoning session_params stop_regex stream_reasoning top_logprobs_num logprob_start_len

	add_bos_token auto_max_new_tokens ban_eos_token banned_strings banned_tokens bot_name character chat_instruct_command context continue_ custom_token_bans
	do_sample dynamic_temperature dynatemp_high dynatemp_low encoder_repetition_penalty epsilon_cutoff eta_cutoff greeting guidance_scale instruction_template
	max_context_length max_length max_new_tokens max_temp min_length min_temp mirostat_mode mode name1 name2 negative_prompt no_repeat_ngram_size nsigma
	penalty_alpha preset prompt_lookup_num_tokens rep_pen rep_pen_range rep_pen_slope repetition_penalty_range sampler_order sampler_priority sampler_seed skew
	smoothing_curve smoothing_factor static_cache stop_sequence stop_sequences temperature_last temp tfs token_healing token_repetition_penalty top_a
	top_h truncation_length typical use_default_badwordsids user_name xtc trim_stop quiet singleline

	models plugins provider route session_id structured_outputs trace transforms usage max_price

	citation_options compound_custom deferred disable_tool_validation enable_search enable_thinking exclude_domains include_domains incremental_output mirostat_lr
	mirostat_target perf_metrics_in_response prompt_cache_max_len prompt_mode prompt_truncate_len random_seed raw_output result_format safe_prompt safety_model
	search_domain_filter search_options search_parameters search_settings speculation thinking thinking_budget translation_options context_length_exceeded_behavior
	max_tokens_to_sample prefix return_images return_related_questions

	allowed_openai_params api_base api_key api_version cache caching custom_llm_provider drop_params fallbacks litellm_params mock_response num_retries
	request_timeout tags model_kwargs streaming verbose callbacks

	background_tasks chat_id features files filter_ids folder_id function_calling id message_id model_item params parent_id skill_ids terminal_id tool_ids
	tool_servers user_message variables

	embedding_type embedding_types input_type late_chunking max_chunks_per_doc max_tokens_per_doc output_dimension output_dtype overlap_tokens prompt_name query
	rank_fields raw_scores return_documents return_multivector return_text texts top_n truncate truncation_direction inputs pair candidate_labels hypothesis_template

	f16 backend batch clip_skip file grammar_json_functions instruction language model_base_name negative_prompt_scale prompt_cache_all prompt_cache_ro quality
	rope_freq_base rope_freq_scale size step tokenizer translate`)

// requests are the bodies of all addresses.
var requests = map[string]any{"chat": chatRequest{}, "completions": completionRequest{}, "embeddings": embeddingsRequest{}, "rerank": rerankRequest{},
	"classify": classifyRequest{}, "fill-mask": fillRequest{}, "tokenize": tokenizeRequest{}, "detokenize": detokenizeRequest{}}

// TestClientFields: no field of a client is taken for a misspelling of another.
func TestClientFields(t *testing.T) {
	for path, body := range requests {
		known := map[string]bool{}
		names(reflect.TypeOf(body), known)
		for _, name := range slices.Compact(slices.Sorted(slices.Values(clientFields))) {
			if meant := misspelt(name, known); meant != "" && !known[name] {
				t.Errorf("%s: %s is taken for %s", path, name, meant)
			}
		}
	}
}

// TestMisspelt: a misspelt field is refused with the one that was meant, another
// unknown one is passed over.
func TestMisspelt(t *testing.T) {
	_, writes := serve(t, service(t), Options{Name: "tiny"})
	texts := serveTexts(t, writeEncoder(t), spec.OutputEmbedding)
	for _, x := range []struct{ path, body, say string }{
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "a"}], "max_token": 3`, "max_token is no field of this request; did you mean max_tokens?"},
		{"/v1/chat/completions", `"mesages": []`, "did you mean messages?"},
		{"/v1/chat/completions", `"messages": [], "temprature": 0`, "did you mean temperature?"},
		{"/v1/chat/completions", `"messages": [], "tempertaure": 0`, "did you mean temperature?"},
		{"/v1/completions", `"prompts": ["a"]`, "did you mean prompt?"},
		{"/v1/completions", `"prompt": "a", "topP": 0.5`, "topP is no field of this request; did you mean top_p?"},
		{"/v1/completions", `"prompt": "a", "response_format": {"type": "json_object"}`, "response_format: \"json_object\" is not served yet"},
		{"/v1/completions", `"prompt": "a", "stream_options": {"include_usages": true}`, "stream_options.include_usages is no field of a request; did you mean include_usage?"},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "a"}], "chat_template": "x"`, "chat_template is not served"},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "a"}, {"rol": "user", "content": "a"}]`, "messages[1].rol is no field of a request; did you mean role?"},
		{"/v1/chat/completions", `"messages": [{"role": "user", "contents": "a"}]`, "messages[0].contents is no field of a request; did you mean content?"},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": [{"type": "text", "texts": "a"}]}]`, "messages[0].content[0].texts is no field of a request; did you mean text?"},
		{"/v1/chat/completions", `"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "argumens": "{}"}}]}]`, "messages[0].tool_calls[0].function.argumens is"},
		{"/v1/chat/completions", `"messages": [], "tools": [{"type": "function", "function": {"name": "f", "parametres": {}}}]`, "tools[0].function.parametres is no field of a request; did you mean parameters?"},
		{"/v1/chat/completions", `"messages": [], "response_format": {"typ": "text"}`, "response_format.typ is no field of a request; did you mean type?"},
		{"/v1/embeddings", `"input": "a", "dimension": 3`, "did you mean dimensions?"},
		{"/v1/rerank", `"querry": "a", "documents": ["b"]`, "did you mean query?"},
		{"/v1/rerank", `"query": "a", "document": ["b"]`, "did you mean documents?"},
	} {
		h := writes
		if x.path == "/v1/embeddings" || x.path == "/v1/rerank" {
			h = texts
		}
		if code, why := answer(t, h, x.path, `{"model": "tiny", `+x.body+`}`, nil); code != 400 || !strings.Contains(why, x.say) {
			t.Errorf("%s %s: %d %s, want %q", x.path, x.body, code, why, x.say)
		}
	}
	var a embeddingsAnswer
	if code, why := answer(t, texts, "/v1/embeddings", `{"model": "tiny", "input": "a", "input_type": "query", "usr": 1, "dimension": null}`, &a); code != 200 {
		t.Errorf("fields that say nothing here: %d %s", code, why)
	}
}

// TestNestedFields: what clients and templates put into messages and the like passes.
func TestNestedFields(t *testing.T) {
	for name, raw := range map[string]string{
		"messages": `[{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "image_url", "image_url": {"url": "x", "detail": "low"}}], "name": "b"},
			{"role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null, "function_call": null, "reasoning_details": [], "provider_specific_fields": null,
			"tool_calls": [{"id": "1", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{\"contents\": 1}"}}], "prefix": true, "partial": true, "tool_plan": "x",
			"thought": "x", "citations": [], "context": "x", "task": "x", "title": "x", "date": "x", "id": "x", "created_at": 1, "model": "x", "images": [], "tools": [], "documents": []},
			{"role": "tool", "content": "x", "tool_call_id": "1", "is_error": false, "tool_name": "x"}]`,
		"tools": `[{"type": "function", "function": {"name": "f", "description": "d", "strict": true, "parameters": {"type": "object", "propertys": {"role": {}, "nam": {}}}}},
			{"type": "web_search", "search_context_size": "low", "user_location": {}}, {"type": "custom", "custom": {"name": "x", "format": {}}}, {"name": "f", "input_schema": {}}]`,
		"response_format": `{"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": {"typ": 1}}, "structures": [], "triggers": []}`,
		"stream_options":  `{"include_usage": true, "include_obfuscation": false, "continuous_usage_stats": true}`,
	} {
		if err := nested[name].misspelt(name, name, []byte(raw)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeepLists: lists in lists as deep as JSON may have them are not looked into,
// so that a long body costs one reading of each level of its fields.
func TestDeepLists(t *testing.T) {
	deep := strings.Repeat("[", 9000) + `{"nam": 1}` + strings.Repeat("]", 9000)
	for name, raw := range map[string]string{
		"tools":           deep,
		"messages":        `[{"role": "user", "content": ` + deep + `}]`,
		"response_format": `{"json_schema": ` + deep + `}`,
	} {
		body := []byte(raw)
		n := testing.AllocsPerRun(1, func() {
			if err := nested[name].misspelt(name, name, body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n > 1000 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
