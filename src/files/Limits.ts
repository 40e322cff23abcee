/** Numbers of shared files. Part of `limits` (src/Limits.ts). */
export const filesLimits = {
  /** directories below each other, the bucket included */
  directoryLevels: 64
} as const
