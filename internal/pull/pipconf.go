package pull

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// pipConfig is what pip's configuration says about indexes.
type pipConfig struct {
	indexes []string // index-url, then the extra ones; empty if none is named
	cert    string   // file of root certificates
	proxy   string
}

// readPipConfig reads pip's environment variables and configuration files in
// pip's order, later ones prevailing: global, user, site, PIP_CONFIG_FILE,
// variables (https://pip.pypa.io/en/stable/topics/configuration/).
func readPipConfig(getenv func(string) string) pipConfig {
	values := map[string]string{}
	for _, path := range pipFiles(getenv) {
		if b, err := os.ReadFile(path); err == nil && len(b) < 1<<20 {
			parseINI(string(b), values)
		}
	}
	get := func(key string) string {
		if v := getenv("PIP_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))); v != "" {
			return v
		}
		if v, ok := values["download."+key]; ok {
			return v
		}
		return values["global."+key]
	}
	c := pipConfig{cert: get("cert"), proxy: get("proxy")}
	switch strings.ToLower(get("no-index")) {
	case "1", "true", "yes", "on", "y", "t":
		return c
	}
	if first := strings.TrimSpace(get("index-url")); first != "" {
		c.indexes = append([]string{first}, strings.Fields(get("extra-index-url"))...)
	}
	return c
}

// pipFiles lists the files that pip would read on this system.
func pipFiles(getenv func(string) string) []string {
	own := getenv("PIP_CONFIG_FILE")
	if own == os.DevNull {
		return nil // pip's way of switching all files off
	}
	files, user := pipPlaces(getenv)
	if _, err := os.Stat(own); own == "" || err != nil {
		files = append(files, user...)
	}
	if venv := getenv("VIRTUAL_ENV"); venv != "" {
		files = append(files, filepath.Join(venv, "pip.conf"), filepath.Join(venv, "pip.ini"))
	}
	if own != "" {
		files = append(files, own)
	}
	return files
}

// pipPlaces lists the files for all users and those for this one.
func pipPlaces(getenv func(string) string) (global, user []string) {
	home := getenv("HOME")
	switch runtime.GOOS {
	case "windows":
		if d := getenv("ProgramData"); d != "" {
			global = []string{filepath.Join(d, "pip", "pip.ini")}
		}
		user = []string{filepath.Join(getenv("USERPROFILE"), "pip", "pip.ini"), filepath.Join(getenv("APPDATA"), "pip", "pip.ini")}
		return global, user
	case "darwin":
		global = []string{"/Library/Application Support/pip/pip.conf"}
		support := filepath.Join(home, "Library", "Application Support", "pip")
		if st, err := os.Stat(support); err != nil || !st.IsDir() {
			support = filepath.Join(home, ".config", "pip")
		}
		return global, []string{filepath.Join(home, ".pip", "pip.conf"), filepath.Join(support, "pip.conf")}
	}
	dirs := getenv("XDG_CONFIG_DIRS")
	if dirs == "" {
		dirs = "/etc/xdg"
	}
	for _, d := range filepath.SplitList(dirs) {
		global = append(global, filepath.Join(d, "pip", "pip.conf"))
	}
	config := getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	return append(global, "/etc/pip.conf"), []string{filepath.Join(home, ".pip", "pip.conf"), filepath.Join(config, "pip", "pip.conf")}
}

// parseINI adds the options of a file in the format of Python's configparser:
// "key = value" or "key: value", indented lines go on with the value, # and ;
// begin a comment line. Keys are "section.name" with dashes for underscores.
func parseINI(text string, values map[string]string) {
	section, key := "", ""
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		if (line[0] == ' ' || line[0] == '\t') && key != "" {
			values[key] = strings.TrimSpace(values[key] + "\n" + trimmed)
			continue
		}
		if trimmed[0] == '[' && trimmed[len(trimmed)-1] == ']' {
			section, key = trimmed[1:len(trimmed)-1], ""
			continue
		}
		i := strings.IndexAny(trimmed, "=:")
		if i < 0 {
			key = ""
			continue
		}
		name := strings.ToLower(strings.TrimSpace(trimmed[:i]))
		key = section + "." + strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		values[key] = strings.TrimSpace(trimmed[i+1:])
	}
}

// indexClient is the puller's client with pip's certificates and proxy.
func (p *puller) indexClient(c pipConfig) (*http.Client, error) {
	if p.Options.Client != nil || (c.cert == "" && c.proxy == "") {
		return p.client, nil
	}
	client, transport := *p.client, newTransport()
	if c.proxy != "" {
		u, err := url.Parse(c.proxy)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("pip's option proxy is not a valid address")
		}
		transport.Proxy = http.ProxyURL(u)
	}
	if c.cert != "" {
		pem, err := os.ReadFile(c.cert)
		if err != nil {
			return nil, fmt.Errorf("pip's option cert: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("pip's option cert: %s holds no certificate", c.cert)
		}
		transport.TLSClientConfig = tlsConfig(pool)
	}
	client.Transport = transport
	return &client, nil
}
