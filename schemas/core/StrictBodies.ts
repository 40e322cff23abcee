/**
 * Bodies are what the document says: a member that is not in the schema is refused, for a restriction that is misspelt and
 * dropped would be none.
 */
export const strictBodies = { onExcessProperty: "error" } as const
