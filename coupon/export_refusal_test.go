package coupon

// RefusalOf returns what callers are told of an error.
func (s *Service) RefusalOf(err error) error { return s.refusal(err) }
