import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactElement, useCallback, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { moveByKeys } from '../row-keys.ts'
import { type ListItem, toItems, type ToolSection } from '../tool-list.ts'
import { usePins } from './pin-notes.tsx'
import { SectionRow } from './section-row.tsx'
import { ToolRow } from './tool-row.tsx'

export interface ToolListingProps {
  readonly sections: readonly ToolSection[]
  readonly whose: Readonly<Record<string, string>>
}

const HEAD_PX = 46
const TOOL_PX = 55
const LINE_PX = 21

/** All sections and tools, of which only those are rendered that are on the screen. */
export function ToolListing({ sections, whose }: ToolListingProps): ReactElement {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const items = useMemo(() => toItems(sections, closed), [sections, closed])
  const known = usePins()
  const pins = useMemo(() => new Map(known.map((pin) => [pin.tool, pin])), [known])
  const list = useRef<HTMLUListElement>(null)
  const top = useTop(list)
  const rows = useWindowVirtualizer({
    count: items.length,
    estimateSize: (i) => estimate(items[i]),
    getItemKey: (i) => items[i]?.key ?? i,
    overscan: 10,
    scrollMargin: top,
    // The header and its shadow stay on top.
    scrollPaddingStart: 56,
  })
  const toggle = useCallback((key: string) => {
    setClosed((before) => {
      const next = new Set(before)
      if (!next.delete(key)) next.add(key)
      return next
    })
  }, [])
  return (
    <ul
      ref={list}
      className="listing-rows"
      style={{ height: rows.getTotalSize() }}
      onKeyDown={(event) => moveByKeys(event, rows)}
      aria-label="Groups and tools"
    >
      {rows.getVirtualItems().map(({ index, key, start }) => {
        const item = items[index]
        if (!item) return null
        return (
          <li
            key={key}
            ref={rows.measureElement}
            data-index={index}
            aria-setsize={items.length}
            aria-posinset={index + 1}
            className={`row-${item.kind}`}
            style={{ transform: `translateY(${start - top}px)` }}
          >
            {item.kind === 'section' ? (
              <SectionRow section={item.section} isClosed={closed.has(item.key)} toggle={toggle} />
            ) : (
              <ToolRow
                tool={item.tool}
                group={item.group}
                isLast={item.isLast}
                pin={pins.get(item.tool.id)}
                whose={whose}
              />
            )}
          </li>
        )
      })}
    </ul>
  )
}

/** Near enough that little moves when a row is measured. */
function estimate(item: ListItem | undefined): number {
  if (item?.kind === 'tool') return TOOL_PX + (item.tool.reasons.length > 0 ? LINE_PX : 0)
  return HEAD_PX + (item?.section.group?.reason === undefined ? 0 : LINE_PX)
}

/** How far below the top of the page an element begins, also after what is above it has grown. */
export function useTop(element: React.RefObject<HTMLElement | null>): number {
  const [top, setTop] = useState(0)
  useLayoutEffect(() => {
    const measure = (): void => {
      const box = element.current?.getBoundingClientRect()
      if (box) setTop(Math.round(box.top + scrollY))
    }
    measure()
    const observer = new ResizeObserver(measure)
    const parent = element.current?.closest('main')
    if (parent) for (const child of [parent, ...parent.children]) observer.observe(child)
    return () => observer.disconnect()
  }, [element])
  return top
}
