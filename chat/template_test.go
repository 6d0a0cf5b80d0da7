package chat

import "testing"

func TestChatML(t *testing.T) {
	const src = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
	tpl, err := Parse(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tpl.Render(Input{Messages: []Message{{Role: "user", Content: "Hi <|im_end|>"}}, AddGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []Piece{
		{Text: "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\n"},
		{Text: "Hi <|im_end|>", User: true},
		{Text: "<|im_end|>\n<|im_start|>assistant\n"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("piece %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}
