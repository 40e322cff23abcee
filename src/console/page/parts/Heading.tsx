import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef } from "preact/hooks"

/** Names the browser tab while the component is shown. */
export const useTitle = (title: string): void =>
  useEffect(() => {
    document.title = `${title} · Signalbox`
    return () => {
      document.title = "Signalbox"
    }
  }, [title])

/** The heading of a page. Keyboard users go on reading from it: the element that had the focus is gone. */
export const Heading = ({ children }: { readonly children: ComponentChildren }) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true })
  }, [])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  )
}
