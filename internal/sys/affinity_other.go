//go:build !linux

package sys

import "errors"

func affinityMask() []int { return nil }

func pinThread(int) error { return errors.ErrUnsupported }

func onMainThread() bool { return false }
