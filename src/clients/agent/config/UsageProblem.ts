/** The client was started in a way that cannot work. The message says what to do. */
export class UsageProblem extends Error {
  override readonly name = "UsageProblem"
}

/** A configuration that is missing or cannot work. */
export class ConfigurationProblem extends UsageProblem {}
