package cpu

import (
	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/program"
)

// constants computes once what is the same for all tokens, whatever the batch,
// and takes its steps out of the walk. Their buffers are shared with nothing else.
func (s *Stage) constants() error {
	fixed := map[program.Buf]bool{}
	for i := range s.exec {
		e, ok := s.exec[i].(*opExec)
		if !ok || !s.p.Buffers[e.step.Out].Const || !all(e.step.In, fixed) {
			continue
		}
		s.b = &batch.Batch{}
		e.run(s, s.workers[0])
		if f := s.failed.Swap(nil); f != nil {
			return *f
		}
		s.exec[i] = nil
		fixed[e.step.Out] = true
	}
	s.b = nil
	for i := range s.exec {
		if e, ok := s.exec[i].(*heads); ok {
			if err := e.packConstants(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// all says whether every buffer is in a set.
func all(bs []program.Buf, set map[program.Buf]bool) bool {
	for _, b := range bs {
		if !set[b] {
			return false
		}
	}
	return true
}
