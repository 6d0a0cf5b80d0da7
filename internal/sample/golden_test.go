package sample

// Tokens that TestGoldenDraws expects. They are this package's own output; that
// it is right is shown by FuzzAgainstReference. To renew them after a change
// that is meant, copy what the failing test prints.
var (
	goldenPlain   = []int32{16, 98, 16, 68, 59, 97, 46, 30, 90, 38, 90, 19}
	goldenUsual   = []int32{19, 87, 65, 49, 65, 27, 2, 19, 95, 49, 49, 19}
	goldenTypical = []int32{95, 8, 79, 57, 8, 54, 35, 62, 84, 79, 65, 5}
)
