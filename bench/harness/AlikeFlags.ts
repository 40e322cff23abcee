/**
 * Flags of V8 that make processes of one commit more alike, for both sides of a comparison (figures: decision record 0019). Functions
 * are compiled where they became hot, and not on a helper thread some time later, when they have seen other things; hashes and random
 * numbers are the same in each process. A server is warm after a quarter of the calls, too.
 */
export const alikeFlags = ["--no-concurrent-recompilation", "--hash-seed=1", "--random-seed=1"]
