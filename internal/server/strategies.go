package server

import "github.com/inferflow/inferflow/internal/sample"

// strategies are the fields of a request for ways to choose tokens beside the
// usual filters, under the names of llama.cpp's server where it has them.
type strategies struct {
	TailFree    *float64 `json:"tfs_z"`
	Mirostat    *int     `json:"mirostat"`
	MirostatTau *float64 `json:"mirostat_tau"`
	MirostatEta *float64 `json:"mirostat_eta"`
	FSDAlpha    *float64 `json:"fsd_alpha"`
	FSDK        *int     `json:"fsd_k"`
	FSDN        *int     `json:"fsd_n"`
	FSDBeta     *float64 `json:"fsd_beta"`
	FSDRandom   *int     `json:"fsd_random"`
	Pool        *int     `json:"pool_size"`
	PutOff      *int     `json:"eos_bypassing_max"`
}

// apply sets what the request names.
func (r *strategies) apply(p *sample.Params) {
	for _, f := range []struct{ dst, src *float64 }{{&p.TailFree, r.TailFree}, {&p.Mirostat.Tau, r.MirostatTau}, {&p.Mirostat.Eta, r.MirostatEta},
		{&p.FSD.Alpha, r.FSDAlpha}, {&p.FSD.Beta, r.FSDBeta}} {
		if f.src != nil {
			*f.dst = *f.src
		}
	}
	for _, f := range []struct{ dst, src *int }{{&p.Mirostat.Version, r.Mirostat}, {&p.FSD.K, r.FSDK}, {&p.FSD.N, r.FSDN},
		{&p.FSD.Random, r.FSDRandom}, {&p.Pool, r.Pool}, {&p.PutOff, r.PutOff}} {
		if f.src != nil {
			*f.dst = *f.src
		}
	}
}

// named says whether the request names one of them.
func (r *strategies) named() bool { return *r != strategies{} }
