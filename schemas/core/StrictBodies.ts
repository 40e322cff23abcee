/** Unknown members of a body are refused: a misspelt restriction would otherwise be dropped silently. */
export const strictBodies = { onExcessProperty: "error" } as const
