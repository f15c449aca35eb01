import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { useApi } from '../hooks.ts'
import type { ToolBody, ToolRow } from '../wire.ts'
import { Drawer, Part } from './drawer.tsx'
import { Exact } from './exact.tsx'
import { Decision, Details, RecentCalls } from './tool-facts.tsx'

const REFRESH_MS = 2000

interface ToolDrawerProps {
  readonly id: string
  /** The tool, if it is in the list. */
  readonly held: ToolRow | undefined
  /** The caller and the app. */
  readonly whose: { readonly as: string; readonly caller: string; readonly app: string }
}

/** Shows the decision about a tool for one caller, and its latest calls. Its page has the schema and the playground. */
export function ToolDrawer({ id, held, whose }: ToolDrawerProps): ReactElement {
  const { as, caller, app } = whose
  const whole = useApi<ToolBody>({
    key: ['tool', id, as, caller, app],
    path: '/api/tool',
    parameters: { tool: id, ...whose },
    everyMs: REFRESH_MS,
  })
  const body = whole.isPlaceholderData ? undefined : whole.data
  return (
    <Drawer
      id={id}
      title={<Exact text={id} className="id" />}
      what="tool"
      row={body?.tool ?? held}
      isUnknown={whole.error !== null}
    >
      {(tool) => (
        <>
          <p className="row loose call-links">
            <a href={linkTo('tool', { id, ...whose })}>Its page, with the playground</a>
            <a href={linkTo('calls', { tool: id })}>All its calls</a>
          </p>
          <Decision tool={tool} body={body} level="h3" />
          <Details tool={tool} body={body} whose={whose} level="h3" />
          <Part title="Recent calls">
            <RecentCalls tool={id} />
          </Part>
        </>
      )}
    </Drawer>
  )
}
