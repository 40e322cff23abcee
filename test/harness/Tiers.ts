/**
 * The tiers of the tests. A file says in its name which one it belongs to: `X.faults.test.ts`, `X.browser.test.ts`, and
 * `X.test.ts` for all others, which `npm test` runs.
 */
export type Tier = "quick" | "faults" | "browser"

/** @param file its path, or its name */
export const tierOf = (file: string): Tier | undefined => {
  const name = file.slice(file.lastIndexOf("/") + 1)
  if (name.endsWith(".faults.test.ts")) return "faults"
  if (name.endsWith(".browser.test.ts")) return "browser"
  return /^[^.]+\.test\.ts$/.test(name) ? "quick" : undefined
}

/** The files of the tiers that have a word in their names, as patterns for vitest; all others are quick. */
export const patternsOf = {
  faults: "test/**/*.faults.test.ts",
  browser: "test/**/*.browser.test.ts"
} as const
