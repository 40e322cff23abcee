import { useLayoutEffect, useRef } from "preact/hooks"

/** Keyboard users go on reading from the heading: the element that had the focus is gone. */
export const useFocusOnce = () => {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true })
  }, [])
  return heading
}
