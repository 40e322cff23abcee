/** Throws what the system says when the memory cannot be written to. */
export declare const hideEnvironment: () => void
