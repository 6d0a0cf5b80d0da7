package pull

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Progress is a report on one file. Reports come from one goroutine at a time.
type Progress struct {
	Name  string
	Stage string // "fetching", "checking" or "unpacking"
	Done  int64  // bytes, those of an earlier run included
	Total int64  // bytes, 0 if unknown
	Rate  float64
	ETA   time.Duration // 0 if unknown
	End   bool          // the last report of the stage
}

// meter makes reports: at most ten a second, with the rate of the last seconds.
type meter struct {
	report func(Progress)
	p      Progress
	now    func() time.Time
	last   time.Time
	marks  []mark // about one a report, the oldest first
}

type mark struct {
	at   time.Time
	done int64
}

const (
	meterEvery  = 100 * time.Millisecond
	meterWindow = 5 * time.Second
)

func newMeter(report func(Progress), name, stage string, done, total int64) *meter {
	m := &meter{report: report, now: time.Now, p: Progress{Name: name, Stage: stage, Done: done, Total: total}}
	m.marks = []mark{{m.now(), done}}
	return m
}

func (m *meter) set(done int64) {
	m.p.Done = done
	now := m.now()
	if now.Sub(m.last) < meterEvery {
		return
	}
	m.last = now
	m.emit(now)
}

func (m *meter) emit(now time.Time) {
	if m.p.Done < m.marks[len(m.marks)-1].done { // started anew
		m.marks = m.marks[:0]
	}
	m.marks = append(m.marks, mark{now, m.p.Done})
	for len(m.marks) > 2 && now.Sub(m.marks[0].at) > meterWindow {
		m.marks = m.marks[1:]
	}
	m.p.Rate, m.p.ETA = 0, 0
	if d := now.Sub(m.marks[0].at).Seconds(); d > 0 {
		m.p.Rate = float64(m.p.Done-m.marks[0].done) / d
	}
	if left := m.p.Total - m.p.Done; left > 0 && m.p.Rate > 1 {
		m.p.ETA = time.Duration(min(float64(left)/m.p.Rate, 1e8) * float64(time.Second))
	}
	if m.report != nil {
		m.report(m.p)
	}
}

func (m *meter) end() {
	m.p.End = true
	m.emit(m.now())
}

// Write lets a meter follow a copy.
func (m *meter) Write(b []byte) (int, error) {
	m.set(m.p.Done + int64(len(b)))
	return len(b), nil
}

// Terminal returns a receiver of reports that draws a bar on w if it is a
// terminal, and otherwise writes a plain line every five seconds. It is meant
// for os.Stderr.
func Terminal(w *os.File) func(Progress) {
	tty := false
	if st, err := w.Stat(); err == nil {
		tty = st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return (&renderer{w: w, tty: tty, now: time.Now}).show
}

type renderer struct {
	mu    sync.Mutex
	w     io.Writer
	tty   bool
	now   func() time.Time
	stage string // name and stage of the last line
	said  int64  // the percentage of the last plain line, -1 if unknown
	last  time.Time
	width int // of the last line drawn
}

const (
	plainEvery = 5 * time.Second
	plainSame  = time.Minute // before the same percentage is told again
)

func (r *renderer) show(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Done == 0 && p.Total == 0 && r.width == 0 {
		return // nothing is known yet, or nothing came
	}
	key, now := p.Name+"\x00"+p.Stage, r.now()
	fresh := key != r.stage
	if fresh {
		r.stage, r.last = key, now
	}
	if r.tty {
		r.bar(p)
		return
	}
	// A stage that is over at once needs no line of its own.
	if p.Stage != "fetching" && (fresh || now.Sub(r.last) < plainEvery) {
		return
	}
	percent := int64(-1)
	if p.Total > 0 {
		percent = min(100, p.Done*100/p.Total)
	}
	told := !fresh && percent >= 0 && percent == r.said && (p.End || now.Sub(r.last) < plainSame)
	if !told && (fresh || p.End || now.Sub(r.last) >= plainEvery) {
		r.last, r.said = now, percent
		fmt.Fprintf(r.w, "%s: %s %s\n", p.Name, p.Stage, strings.TrimSpace(p.text()))
	}
}

func (r *renderer) bar(p Progress) {
	line := fmt.Sprintf("%s: %s ", p.Name, p.Stage)
	if p.Total > 0 {
		const cells = 24
		n := int(min(cells, p.Done*cells/p.Total))
		line += "[" + strings.Repeat("=", n) + strings.Repeat(" ", cells-n) + "] "
	}
	line += p.text()
	width := len(line)
	fmt.Fprintf(r.w, "\r%s%s", line, strings.Repeat(" ", max(0, r.width-width)))
	r.width = width
	if p.End {
		fmt.Fprintln(r.w)
		r.width = 0
	}
}

// text is what is said after name and stage.
func (p Progress) text() string {
	s := size(p.Done)
	if p.Total > 0 {
		s = fmt.Sprintf("%3d%% of %s", min(100, p.Done*100/p.Total), size(p.Total))
	}
	if p.Rate > 0 {
		s += fmt.Sprintf(", %s/s", size(int64(p.Rate)))
	}
	if p.ETA > 0 && !p.End {
		s += fmt.Sprintf(", %s left", p.ETA.Round(time.Second))
	}
	return s
}

// size says a number of bytes in the units of the other commands.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}
