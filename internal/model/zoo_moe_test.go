package model_test

import (
	"path/filepath"
	"testing"
)

// withExperts are the zoo's families of experts and of latent attention.
var withExperts = []string{"olmoe", "qwen2_moe", "granitemoe", "granitemoeshared", "granitemoe_swa", "dbrx", "aria_text", "cohere2_moe", "minimax_m2",
	"hunyuan_v1_moe", "kolibri1", "llama4_text", "deepseek_v2", "deepseek_v3", "sarvam_mla", "glm4_moe_lite", "minicpm3", "axk1", "axk2", "deepseek_v32", "glm_moe_dsa",
	"longcat_flash", "hy_v4", "jetmoe"}

// TestZooExperts is TestZoo for the families with experts.
func TestZooExperts(t *testing.T) {
	dir := zoo(t)
	for _, family := range withExperts {
		g := readGolden(t, filepath.Join(dir, family, "golden.json"))
		t.Run(family, func(t *testing.T) { testReference(t, filepath.Join(dir, family), g, 1e-4) })
		if file := filepath.Join(dir, "gguf", family+".gguf"); exists(file) {
			t.Run(family+".gguf", func(t *testing.T) { testReference(t, file, g, 1e-4) })
		}
	}
}
