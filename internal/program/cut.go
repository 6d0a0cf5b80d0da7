package program

import (
	"errors"
	"fmt"
	"slices"
)

// ErrCut marks layers before which a program cannot be cut.
var ErrCut = errors.New("the program cannot be cut there")

// Cut splits a program before the given layers into stages, ascending; none
// gives one stage. Values that later stages read are sent along, whoever made
// them. Each lies between two layers: a stage of the embedding or the head alone
// gains nothing, and one behind an encoder-decoder's layers lacks the encoder. A stage that reads a cache filled by another stage is refused.
// Buffers must not have been assigned yet.
func Cut(p *Program, before ...int) ([]*Program, error) {
	bounds, err := stepBounds(p, before)
	if err != nil {
		return nil, err
	}
	var stages []*Program
	for i := 0; i+1 < len(bounds); i++ {
		q := *p
		q.Steps = copySteps(append(constants(p, bounds[i], bounds[i+1]), p.Steps[bounds[i]:bounds[i+1]]...))
		q.Buffers = append([]Buffer{}, p.Buffers...)
		q.In, q.Out = live(p, bounds[i]), live(p, bounds[i+1])
		if i+2 < len(bounds) {
			q.Logits = None
		}
		stages = append(stages, &q)
	}
	return stages, sharedCaches(stages)
}

func stepBounds(p *Program, before []int) ([]int, error) {
	bounds := []int{0}
	if p.Layers < 2 && len(before) > 0 {
		return nil, fmt.Errorf("program: cut before layer %d: %w: it has one layer", before[0], ErrCut)
	}
	for _, l := range before {
		at := 0
		for at < len(p.Steps) && p.Steps[at].Layer < l {
			at++
		}
		if l < 1 || l >= p.Layers || at <= bounds[len(bounds)-1] || at >= len(p.Steps) {
			return nil, fmt.Errorf("program: cut before layer %d: %w: the layers must be ascending, from 1 to %d", l, ErrCut, p.Layers-1)
		}
		bounds = append(bounds, at)
	}
	return append(bounds, len(p.Steps)), nil
}

// constants lists the steps before from that make what is the same for all
// tokens and read by the steps of [from, to): each stage computes it for itself,
// once, where sending it would take every batch.
func constants(p *Program, from, to int) []Step {
	need, take := map[Buf]bool{}, map[int]bool{}
	want := func(s *Step) {
		s.Visit(func(b *Buf, write bool) { need[*b] = need[*b] || !write && p.Buffers[*b].Const })
	}
	for i := from; i < to; i++ {
		want(&p.Steps[i])
	}
	for i := from - 1; i >= 0; i-- {
		p.Steps[i].Visit(func(b *Buf, write bool) { take[i] = take[i] || write && need[*b] })
		if take[i] {
			want(&p.Steps[i])
		}
	}
	var out []Step
	for i := range from {
		if take[i] {
			out = append(out, p.Steps[i])
		}
	}
	return out
}

// live lists the values made before step at and read at or after it, but for constants.
func live(p *Program, at int) []Buf {
	made := map[Buf]bool{}
	for i := range p.Steps[:at] {
		p.Steps[i].Visit(func(b *Buf, write bool) {
			if write {
				made[*b] = true
			}
		})
	}
	var out []Buf
	for i := range p.Steps[at:] {
		p.Steps[at+i].Visit(func(b *Buf, write bool) {
			if !write && made[*b] && !p.Buffers[*b].Const {
				out = appendOnce(out, *b)
			}
		})
	}
	return out
}

func sharedCaches(stages []*Program) error {
	filled := map[int]int{}
	for i, p := range stages {
		for _, s := range p.Steps {
			switch x := s.Body.(type) {
			case *QKV:
				filled[x.Cache] = i
			case *Put:
				filled[x.Cache] = i
			case *Attention:
				if x.K != None {
					filled[x.Attr.Cache] = i
				}
				if at, ok := filled[x.Attr.Cache]; ok && at != i {
					return fmt.Errorf("program: %w: layer %d reads the keys of a layer in stage %d", ErrCut, s.Layer, at)
				}
			}
		}
	}
	return nil
}

// copySteps copies steps, so that buffers of the copies can be renamed.
func copySteps(steps []Step) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Body = out[i].Body.clone()
	}
	return out
}
