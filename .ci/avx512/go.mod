module avx512emu

go 1.26.0
