import type { RefObject } from "preact"
import { useLayoutEffect } from "preact/hooks"

/** An element that goes away with the focus in it leaves it to the page: the keyboard does not begin at its top again. */
export const useFocusLeft = (element: RefObject<HTMLElement | null>): void => {
  useLayoutEffect(
    () => () => {
      if (element.current?.contains(document.activeElement) === true) document.getElementById("main")?.focus()
    },
    [element]
  )
}
