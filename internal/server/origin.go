package server

import (
	"net"
	"net/http"
	"strconv"
	"strings"
)

// foreign refuses pages of other origins, which a browser lets send requests
// even where it does not let them read the answers, and names that stand for
// this machine only because somebody's name server says so (DNS rebinding).
func (v *Server) foreign(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !v.allows(origin) {
		return &apiError{Status: http.StatusForbidden, Code: "origin_refused",
			Message: "pages of " + strconv.Quote(origin) + " may not call this server; start it with --origins " + strconv.Quote(origin) + " to allow them"}
	}
	if v.local.Load() && v.o.Origins != "*" && !v.named(r.Host) {
		return &apiError{Status: http.StatusForbidden, Code: "host_refused",
			Message: "this server listens for its own machine and does not answer to the host " + strconv.Quote(r.Host) + "; call it by localhost, or start it with --host and an address that others reach"}
	}
	return nil
}

// named says whether a Host header names this machine: an address cannot be
// bent to another machine, names can.
func (v *Server) named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	_, origin, _ := strings.Cut(v.o.Origins, "://")
	if name, _, err := net.SplitHostPort(origin); err == nil {
		origin = name
	}
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil ||
		host == strings.ToLower(v.o.Host) || host == strings.ToLower(origin)
}

// allows says whether pages of an origin may call.
func (v *Server) allows(origin string) bool {
	switch v.o.Origins {
	case "*":
		return true
	case "":
		return isLocal(origin)
	}
	return origin == v.o.Origins
}

// cors lets pages of this machine in, or the origins that were configured.
func (v *Server) cors(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !v.allows(origin) {
		return
	}
	if v.o.Origins == "*" {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	if ask := r.Header.Get("Access-Control-Request-Headers"); ask != "" {
		h.Set("Access-Control-Max-Age", "600")
		h.Set("Access-Control-Allow-Headers", ask)
	}
}

func isLocal(origin string) bool {
	for _, p := range []string{"http://localhost", "https://localhost", "http://127.0.0.1", "https://127.0.0.1", "http://[::1]", "https://[::1]"} {
		if origin == p || strings.HasPrefix(origin, p+":") {
			return true
		}
	}
	return false
}
