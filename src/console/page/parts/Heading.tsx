import { useEffect, useLayoutEffect, useRef } from "preact/hooks"

interface HeadingProps {
  readonly children: string
  /** the name of the browser tab meanwhile; the heading's own text if absent */
  readonly tab?: string
}

/** The heading of a page. Keyboard users go on reading from it: the element that had the focus is gone. */
export const Heading = ({ children, tab = children }: HeadingProps) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true })
  }, [])
  useEffect(() => {
    document.title = `${tab} · Signalbox`
    return () => {
      document.title = "Signalbox"
    }
  }, [tab])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  )
}
