import { useLayoutEffect, useRef } from "preact/hooks"

/** Whoever came here by keyboard goes on reading from the heading: what had the focus is gone. */
export const useFocusOnce = () => {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true })
  }, [])
  return heading
}
