/** Throws what the system says when the memory cannot be written to. */
export declare const hideEnvironment: () => void
export declare const isEnvironmentHidden: () => boolean
