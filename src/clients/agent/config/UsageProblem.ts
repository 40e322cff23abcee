/** The client was started in a way that cannot work. The message says what to do. */
export class UsageProblem extends Error {
  override readonly name = "UsageProblem"
}

/** What was configured cannot work, or is missing. */
export class ConfigurationProblem extends UsageProblem {}
