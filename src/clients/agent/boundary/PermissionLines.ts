import type { Permitted } from "./Approvals.ts"

const givenText = (given: string | null): string =>
  given === null
    ? "given at a time that an earlier version did not note"
    : `given ${given.slice(0, 16).replace("T", " ")} UTC`

/** A list for people: id, scope, when it was given, and below what it covers. Its text may be anything: print it safely. */
export const permissionLines = (
  { permissions, problem }: Pick<Permitted, "permissions" | "problem">,
  withWorkspace = false
): string => {
  const lines = permissions.flatMap(({ covers, given, id, scope, workspace }) => [
    [id, scope, givenText(given), ...(withWorkspace ? [workspace] : [])].join(" · "),
    ...covers.split("\n").map((line) => `    ${line}`)
  ])
  const none = permissions.length === 0 ? ["Nothing is allowed beyond what is asked each time."] : []
  return [...(problem === undefined ? [] : [`! ${problem}`]), ...lines, ...none].join("\n")
}
