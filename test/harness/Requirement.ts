import { assert, describe, it } from "@effect/vitest"

/** Something that tests need of the machine and that cannot be installed with npm. */
export interface Requirement {
  readonly name: string
  readonly available: boolean
  /** why it is not available; "" when it is */
  readonly reason: string
}

/** `probe` looks for it, quickly, and says what is missing; undefined when nothing is. */
export const requirement = (name: string, probe: () => string | undefined): Requirement => {
  const missing = probe()
  return { name, available: missing === undefined, reason: missing ?? "" }
}

/**
 * Describes tests that need it. Where it is missing they are skipped, and the report says why; with `REQUIRE_ALL=1`
 * (continuous integration) a missing requirement is a failure, so that nothing is skipped there unnoticed.
 */
export const describeWith = (
  { available, name, reason }: Requirement,
  title: string,
  tests: () => void
): void => {
  if (available) {
    describe(title, tests)
    return
  }
  const needs = `${title} needs ${name}: ${reason}`
  if (process.env["REQUIRE_ALL"] === "1") it(needs, () => assert.fail(needs))
  else describe.skipIf(true)(needs, tests)
}
