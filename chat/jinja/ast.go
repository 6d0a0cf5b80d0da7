package jinja

// expr is a node with a value, stmt one with an effect on the output or scope.
type expr interface {
	eval(r *run, sc *scope) (Value, error)
	where() pos
}

type stmt interface {
	exec(r *run, sc *scope) error
}

func (p pos) where() pos { return p }

type (
	constExpr struct {
		pos
		v Value
	}
	nameExpr struct {
		pos
		name string
	}
	// listExpr is a list or, with tuple set, a tuple.
	listExpr struct {
		pos
		items []expr
		tuple bool
	}
	dictExpr struct {
		pos
		keys, vals []expr
	}
	attrExpr struct {
		pos
		x    expr
		name string
	}
	itemExpr struct {
		pos
		x, index expr
	}
	// sliceExpr stands as the index of an itemExpr; nil parts are absent.
	sliceExpr struct {
		pos
		lo, hi, step expr
	}
	callExpr struct {
		pos
		fn   expr
		args callArgs
	}
	filterExpr struct {
		pos
		x    expr // nil in filter blocks, where the body stands in
		name string
		args callArgs
	}
	testExpr struct {
		pos
		x    expr
		name string
		args callArgs
	}
	unaryExpr struct {
		pos
		op string // "-", "+", "not"
		x  expr
	}
	binaryExpr struct {
		pos
		op   string
		x, y expr
	}
	logicExpr struct {
		pos
		or   bool
		x, y expr
	}
	concatExpr struct {
		pos
		parts []expr
	}
	compareExpr struct {
		pos
		x   expr
		ops []string
		ys  []expr
	}
	condExpr struct {
		pos
		test, yes, no expr // no may be nil
	}
)

// callArgs are the arguments of a call, filter or test; star and starstar may
// be nil.
type callArgs struct {
	args           []expr
	names          []string
	named          []expr
	star, starstar expr
}

type (
	dataStmt struct{ text Str }
	outStmt  struct{ x expr }
	ifStmt   struct {
		tests  []expr
		bodies [][]stmt
		orelse []stmt
	}
	forStmt struct {
		pos
		target       expr
		iter, test   expr
		body, orelse []stmt
		recursive    bool
	}
	setStmt struct {
		pos
		target, x expr
	}
	setBlockStmt struct {
		pos
		target expr
		filter *filterExpr
		body   []stmt
	}
	macroStmt struct {
		pos
		macroDef
	}
	callStmt struct {
		pos
		call *callExpr
		macroDef
	}
	filterStmt struct {
		pos
		filter *filterExpr
		body   []stmt
	}
	withStmt struct {
		pos
		targets, vals []expr
		body          []stmt
	}
	// scopeStmt runs its body in a scope of its own: block, autoescape, generation.
	scopeStmt struct {
		pos
		body []stmt
	}
	jumpStmt struct{ brk bool }
)

// macroDef is what macros and call blocks share. A default belongs to the last
// parameters.
type macroDef struct {
	name     string
	params   []string
	defaults []expr
	body     []stmt
	uses     special
}

// special says which of the names that macros get for free the body uses: a
// call with arguments beyond the parameters is an error unless it does.
type special struct{ caller, kwargs, varargs bool }

// nsTarget is an assignment target "name.attr".
type nsTarget struct {
	pos
	name, attr string
}

func (n *nsTarget) eval(r *run, sc *scope) (Value, error) {
	return nil, errorf("a namespace target has no value")
}
