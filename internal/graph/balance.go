package graph

import "fmt"

// BalanceAttr makes square matrices [.., n, n] doubly stochastic (Sinkhorn and
// Knopp 1967, as hyper-connections use it, Xie et al. 2026): softmax of each row,
// plus Eps; then the columns are divided by their sums, and in each further round
// the rows and the columns. Eps is added to every sum.
type BalanceAttr struct {
	Rounds int
	Eps    float64
}

// maxRounds bounds the work of one operation.
const maxRounds = 1000

func inferBalance(a *BalanceAttr, x []int) error {
	n := len(x)
	if n < 2 || x[n-1] != x[n-2] || x[n-1] == 0 {
		return fmt.Errorf("doubly_stochastic: takes [.., n, n], got %v", x)
	}
	if a.Rounds < 1 || a.Rounds > maxRounds || !(a.Eps >= 0 && a.Eps <= 1) {
		return fmt.Errorf("doubly_stochastic: %d rounds and an eps of %g; expected 1 to %d, and a number from 0 to 1", a.Rounds, a.Eps, maxRounds)
	}
	return nil
}
