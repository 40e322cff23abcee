type Split<
  Text extends string,
  Before extends ReadonlyArray<string> = readonly []
> = Text extends `${infer Word} ${infer Rest}`
  ? Split<Rest, readonly [...Before, Word]>
  : readonly [...Before, Text]

/** The words of a text with one blank between them, each with its own literal type. */
export const literals = <const Text extends string>(text: Text): Split<Text> =>
  text.split(" ") as ReadonlyArray<string> as Split<Text>
