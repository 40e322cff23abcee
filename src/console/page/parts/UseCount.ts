import { useReducer } from "preact/hooks"

/** A number, and a function that counts it up: reads with it as their `since` begin anew. */
export const useCount = (): readonly [number, () => void] => {
  const [count, up] = useReducer<number, undefined>((before) => before + 1, 0)
  return [count, () => up(undefined)]
}
