import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef } from "preact/hooks"
import "./Menu.css"

interface MenuProps {
  /** of the button, for screen readers: `Actions for notes.txt` */
  readonly label: string
  /** the text on it */
  readonly sign: string
  /** buttons and links */
  readonly children: ComponentChildren
}

const gap = 4

/** A button that opens a list of actions beside it. Escape, a press elsewhere and every action close it. */
export const Menu = ({ children, label, sign }: MenuProps) => {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const shown = useRef<AbortController>(undefined)
  useEffect(() => () => shown.current?.abort(), [])
  const place = (): void => {
    const box = button.current?.getBoundingClientRect()
    const { current } = list
    if (box === undefined || current === null) return
    const { offsetHeight, offsetWidth } = current
    const isAbove = box.bottom + gap + offsetHeight > innerHeight && box.top > offsetHeight + gap
    const top = isAbove ? box.top - gap - offsetHeight : box.bottom + gap
    const left = Math.max(8, Math.min(box.right - offsetWidth, innerWidth - offsetWidth - 8))
    // Of the document, so that it moves with the row.
    current.style.top = `${top + scrollY}px`
    current.style.left = `${left + scrollX}px`
  }
  const onBeforeToggle = (): void => {
    // The browser gives it the focus as the list opens.
    const first = list.current?.querySelector<HTMLElement>("a, button")
    if (first !== null && first !== undefined) first.autofocus = true
  }
  return (
    <>
      <button ref={button} type="button" class="menu-button" popoverTarget={id} aria-label={label}>
        {sign}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        class="menu"
        onBeforeToggle={onBeforeToggle}
        onToggle={({ newState }) => {
          shown.current?.abort()
          if (newState !== "open") return
          shown.current = new AbortController()
          addEventListener("resize", place, { signal: shown.current.signal })
          place()
        }}
        // The focus goes back to the button before a dialog that an action opens takes it from there.
        onClickCapture={() => list.current?.hidePopover()}
        onKeyDown={moveFocus}
      >
        {children}
      </div>
    </>
  )
}

/** Arrow keys go from one action to the next. */
const moveFocus = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (step === undefined) return
  event.preventDefault()
  const actions = Array.from(event.currentTarget.querySelectorAll<HTMLElement>("a, button"))
  const at = actions.findIndex((action) => action === document.activeElement)
  actions.at((at + step) % actions.length)?.focus()
}
