package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Service is what a service file says.
type Service struct {
	Path     string
	Port     int      // [main] http_port; 0: not given
	Models   []Model  // of [transformer_engine] models, in order
	Threads  int      // cpu_threads; 0: not given
	Parallel int      // max_concurrent_queries; 0: not given
	Devices  string   // of [transformer_engine]
	Notes    []string // keys that are read and mean nothing here, or not what they say: one sentence each
}

// Model is one [model.NAME].
type Model struct {
	Name     string
	Dir      string // folder of the files
	SpecFile string // model_spec.json, found beside the files if the path is relative
	Strategy Strategy
	Encoder  *Template // encoder_input_template; nil: none
	Prompt   *Template // prompt_template or decoder_input_template; nil: none
	KVType   string    // device_kv_cache_data_type in lower case; "" if not given
	Context  int       // max_context_len; 0: the model's own
}

// reader collects values of one section with the first error and the notes.
type reader struct {
	f     *INI
	s     *Section
	extra map[string]string
	used  map[string]bool
	err   error
}

func (f *INI) reader(s *Section, extra map[string]string) *reader {
	return &reader{f: f, s: s, extra: extra, used: map[string]bool{}}
}

// text is the value of the first of the keys that is there.
func (r *reader) text(keys ...string) (v string, ok bool) {
	for _, k := range keys {
		r.used[k] = true
		if ok {
			continue
		}
		var err error
		if v, ok, err = r.f.Text(r.s, k, r.extra); err != nil && r.err == nil {
			r.err = err
		}
	}
	return v, ok
}

func (r *reader) number(key string, least, most int) int {
	v, ok := r.text(key)
	if !ok || v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if (err != nil || n < least || n > most) && r.err == nil {
		e, _ := r.s.Raw(key)
		r.err = fmt.Errorf("config: %s:%d: %s: %w: %q, want a number from %d to %d", r.f.Path, e.Line, key, ErrValue, clip(v), least, most)
	}
	return n
}

// meaningless are keys that are understood and change nothing, with the reason.
var meaningless = map[string]string{
	"worker_count":              "requests are not bound to workers",
	"is_study_mode":             "nothing is shown of a step's inside; see inferflow explain and inferflow logits",
	"default_prompt_template":   "no version ever read it; each model has a prompt_template",
	"return_output_tensors":     "logits are always at hand",
	"show_tensors":              "see inferflow explain",
	"decoder_cpu_layer_count":   "all layers run on the processor in this build",
	"encoder_cpu_layer_count":   "all layers run on the processor in this build",
	"cpu_layer_count":           "all layers run on the processor in this build",
	"be_host_embeddings":        "embeddings are rows of the mapped file",
	"host_kv_cache_percent":     "keys and values lie in main memory",
	"host_weight_data_type":     "weights run in the type that the file stores",
	"host_kv_cache_data_type":   "keys and values have one type",
	"delta_tensor_ratio":        "weights run in the type that the file stores",
	"tensor_quant_threshold":    "weights run in the type that the file stores",
	"multi_gpu_strategy":        "devices says it",
	"global_model_dir":          "",
	"prompt_template_count":     "",
	"require_enter_key_to_exit": "",
}

// ReadService reads a service file, or that of a tool which names one.
func ReadService(path string) (*Service, error) {
	f, err := ReadINI(path)
	if err != nil {
		return nil, err
	}
	return f.Engine()
}

// Service interprets the file as a service's.
func (f *INI) Service() (*Service, error) {
	s := &Service{Path: f.Path}
	engine := f.Section("transformer_engine")
	if engine == nil {
		return nil, fmt.Errorf("config: %s: %w: there is no section [transformer_engine]", f.Path, ErrSyntax)
	}
	main := f.reader(f.Section("main"), nil)
	s.Port = main.number("http_port", 0, 65535)
	e := f.reader(engine, nil)
	s.Threads = e.number("cpu_threads", 0, 1024)
	s.Parallel = e.number("max_concurrent_queries", 0, 1<<16)
	s.Devices, _ = e.text("devices")
	names, _ := e.text("models")
	main.tool()
	if main.err != nil || e.err != nil {
		return nil, first(main.err, e.err)
	}
	if err := checkDevices(s.Devices); err != nil {
		return nil, fmt.Errorf("config: %s: devices: %w", f.Path, err)
	}
	if s.Devices != "" {
		s.Notes = append(s.Notes, fmt.Sprintf("devices = %s names GPUs; this build runs all layers on the processor", s.Devices))
	}
	for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' }) {
		m, err := f.model(name, s)
		if err != nil {
			return nil, err
		}
		s.Models = append(s.Models, m)
	}
	if len(s.Models) == 0 {
		return nil, fmt.Errorf("config: %s:%d: %w: [transformer_engine] has no models = NAME", f.Path, engine.Line, ErrValue)
	}
	for _, key := range batchKeys {
		main.used[key] = true // of a tool, whose file may be the service's too
	}
	s.leftOver(f, main)
	s.leftOver(f, e)
	s.strangeSections(f)
	return s, nil
}

func first(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

func (f *INI) model(name string, s *Service) (Model, error) {
	sec := f.Section("model." + name)
	if sec == nil {
		return Model{}, fmt.Errorf("config: %s: %w: models names %q and there is no section [model.%s]", f.Path, ErrValue, name, name)
	}
	extra := map[string]string{"model_name": name}
	r := f.reader(sec, extra)
	m := Model{Name: name}
	m.Dir, _ = r.text("model_dir")
	m.SpecFile, _ = r.text("model_specification_file", "model_spec_file")
	m.Context = r.number("max_context_len", 0, 1<<28)
	kv, _ := r.text("device_kv_cache_data_type")
	m.KVType = strings.ToLower(kv)
	strategy, _ := r.text("decoding_strategy")
	encoder, hasEncoder := r.text("encoder_input_template")
	prompt, hasPrompt := r.text("prompt_template", "decoder_input_template")
	for _, e := range sec.Entries() {
		if strings.HasPrefix(e.Key, "device_weight_data_type") {
			r.used[e.Key] = true
			if e.Value != "" && !strings.EqualFold(e.Value, "f16") {
				s.Notes = append(s.Notes, fmt.Sprintf("[%s] %s = %s: weights run in the type that the file stores", sec.Name, e.Key, e.Value))
			}
		}
	}
	if devices, ok := r.text("devices"); ok && r.err == nil {
		if err := checkDevices(devices); err != nil {
			r.err = fmt.Errorf("config: %s: [%s] devices: %w", f.Path, clip(sec.Name), err)
		} else if devices != "" {
			s.Notes = append(s.Notes, fmt.Sprintf("[%s] devices = %s names GPUs; this build runs all layers on the processor", sec.Name, devices))
		}
	}
	if r.err != nil {
		return m, r.err
	}
	if m.Dir == "" || m.SpecFile == "" {
		return m, fmt.Errorf("config: %s:%d: %w: [%s] needs model_dir and model_specification_file", f.Path, sec.Line, ErrValue, sec.Name)
	}
	m.Dir = filepath.Clean(m.Dir)
	if !filepath.IsAbs(m.SpecFile) && !strings.ContainsAny(m.SpecFile, `/\`) {
		m.SpecFile = filepath.Join(m.Dir, m.SpecFile)
	}
	m.SpecFile = filepath.Clean(m.SpecFile)
	var err error
	parse := ParseTemplate
	if m.Strategy, err = ParseStrategy(strategy); err == nil && hasEncoder && encoder != "" {
		m.Encoder, err = f.template(encoder, ParseTemplate)
		parse = ParseFrame // what the decoder begins with holds no query then
	}
	if err == nil && hasPrompt && prompt != "" {
		m.Prompt, err = f.template(prompt, parse)
	}
	if err == nil && strings.Contains(encoder+prompt, `\n`) && !strings.Contains(encoder+prompt, "{\n}") {
		s.Notes = append(s.Notes, fmt.Sprintf(`[%s] a template holds \n, which are two characters of text; {\n} is the end of a line`, sec.Name))
	}
	if err != nil {
		return m, f.located(fmt.Sprintf("[%s]", sec.Name), err)
	}
	s.leftOver(f, r)
	return m, nil
}

// leftOver notes the keys of a section that nothing read.
func (s *Service) leftOver(f *INI, r *reader) {
	for _, e := range r.s.Entries() {
		if r.used[e.Key] {
			continue
		}
		why, known := meaningless[e.Key]
		switch {
		case !known:
			s.Notes = append(s.Notes, fmt.Sprintf("%s:%d: [%s] %s is no key that is known; it is not used", f.Path, e.Line, r.s.Name, e.Key))
		case why != "" && e.Value != "" && e.Value != "0" && e.Value != "false":
			s.Notes = append(s.Notes, fmt.Sprintf("[%s] %s has no effect: %s", r.s.Name, e.Key, why))
		}
	}
}

// strangeSections notes sections that nothing reads.
func (s *Service) strangeSections(f *INI) {
	for _, sec := range f.sections {
		name, _, _ := strings.Cut(sec.Name, ".")
		switch {
		case slices.Contains([]string{"", "main", "transformer_engine", "model", "prompt_templates", "prompt_template", "query_list"}, name), sec.Name == "app_env.base":
		case sec.Name == "app_env.logging" || sec.Name == "app_env.status_manager":
			if v, _ := sec.Raw("enable_monitoring"); v.Value == "1" {
				s.Notes = append(s.Notes, fmt.Sprintf("[%s] has no effect: a served model tells its state at /health and /metrics", sec.Name))
			}
			if v, _ := sec.Raw("enable_logging"); v.Value == "1" {
				s.Notes = append(s.Notes, fmt.Sprintf("[%s] has no effect: requests are told on standard error", sec.Name))
			}
		default:
			s.Notes = append(s.Notes, fmt.Sprintf("%s:%d: [%s] is no section that is known; it is not used", f.Path, sec.Line, clip(sec.Name)))
		}
	}
}

// checkDevices reads groups of device numbers: members joined by & or |,
// groups by ; or , and all of one size.
func checkDevices(v string) error {
	if v == "" {
		return nil
	}
	if len(v) > 1<<12 {
		return fmt.Errorf("%w: %q is too long", ErrValue, clip(v))
	}
	size := 0
	for _, group := range strings.FieldsFunc(v, func(r rune) bool { return r == ';' || r == ',' }) {
		members := strings.FieldsFunc(group, func(r rune) bool { return r == '&' || r == '|' })
		if size == 0 {
			size = len(members)
		}
		if len(members) != size || size == 0 {
			return fmt.Errorf("%w: %q has groups of different sizes", ErrValue, clip(v))
		}
		for _, m := range members {
			if _, err := strconv.ParseUint(strings.TrimSpace(m), 10, 16); err != nil {
				return fmt.Errorf("%w: %q is no device number", ErrValue, clip(strings.TrimSpace(m)))
			}
		}
	}
	return nil
}
