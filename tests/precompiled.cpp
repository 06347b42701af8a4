// A source for the target whose precompiled header the test programs share.
