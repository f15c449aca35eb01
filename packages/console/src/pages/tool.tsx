import * as Tabs from '@radix-ui/react-tabs'
import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { explainRecord } from '../audit-feed.ts'
import { count, formatDuration, formatNumber, limitText } from '../format.ts'
import { useApi, useChoices } from '../hooks.ts'
import { Badge, EventBadge, DecisionBadge, StateBadge, PinNotes, usePins } from '../parts/badges.tsx'
import { CallerChoice } from '../parts/caller-choice.tsx'
import { Fact, Part } from '../parts/drawer.tsx'
import { Exact, Ids, JsonBlock } from '../parts/exact.tsx'
import { HaltButton } from '../parts/halt-dialog.tsx'
import { Empty, Failed, Loading, PageHead, Pending } from '../parts/panels.tsx'
import { Playground } from '../parts/playground.tsx'
import { MayStill, Reasons } from '../parts/reasons.tsx'
import { Ago } from '../parts/when.tsx'
import { pinOf, stateOfTool } from '../states.ts'
import type { AuditBody, CallersBody, ToolBody, ToolRow, ToolExport } from '../wire.ts'
import { useCallers } from '../callers.ts'
import { useTools } from '../tools.ts'

const REFRESH_MS = 2000
const RECENT = 15

/** The page of one tool, for one caller. */
export function ToolPage(): ReactElement {
  const of = useChoices()
  const [id, custom, app] = [of('id'), of('caller'), of('app')]
  const callers = useCallers().data?.callers ?? []
  const as = of('as') || (custom === '' ? (callers[0]?.user ?? '') : '')
  const whose = { as, caller: custom, app }
  const whole = useApi<ToolBody>({
    key: ['tool', id, as, custom, app],
    path: '/api/tool',
    parameters: { tool: id, ...whose },
    everyMs: REFRESH_MS,
    enabled: id !== '' && (as !== '' || custom !== ''),
  })
  const isAbsent = whole.error?.isAbsent === true
  const list = useTools({ ...whose, everyMs: REFRESH_MS, enabled: isAbsent })
  const tool = whole.data?.tool ?? list.data?.tools.find((one) => one.id === id)
  const error = isAbsent ? list.error : whole.error
  const isUnknown = id === '' || (!tool && (error?.code === 'tool_unknown' || list.data !== undefined))
  return (
    <>
      <p className="crumbs">
        <a href={linkTo('tools', whose)}>Tools</a>
      </p>
      <PageHead title={<Exact text={id === '' ? 'No tool' : id} className="id" />}>
        <div className="toolbar tight">
          <CallerChoice callers={callers} as={as} custom={custom} />
        </div>
      </PageHead>
      {isUnknown ? (
        <Empty title="Unknown tool">
          <p>{error?.message ?? 'Its server may have removed it.'}</p>
        </Empty>
      ) : (
        <Pending answer={{ data: tool, error, refetch: whole.refetch }} what="the tool" />
      )}
      {tool && <Facts key={tool.id} tool={tool} body={whole.data} whose={whose} callers={callers} />}
    </>
  )
}

interface FactsProps {
  readonly tool: ToolRow
  /** The tool. Absent if the gateway does not send it. */
  readonly body: ToolBody | undefined
  readonly whose: Readonly<Record<string, string>>
  readonly callers: CallersBody['callers']
}

function Facts({ tool, body, whose, callers }: FactsProps): ReactElement {
  return (
    <div className="stack sheet">
      <Decision tool={tool} body={body} />
      {body && (
        <Part level="h2" title="Playground">
          <Playground tool={tool} inputSchema={body.inputSchema} whose={whose} callers={callers} />
        </Part>
      )}
      <Details tool={tool} body={body} whose={whose} />
      {body ? (
        <Definition body={body} />
      ) : (
        <p className="dim">This gateway does not report the schema, the exports and the limits of a tool.</p>
      )}
      <Part level="h2" title="Recent calls">
        <RecentCalls tool={tool.id} />
      </Part>
    </div>
  )
}

function Decision({ tool, body }: Pick<FactsProps, 'tool' | 'body'>): ReactElement {
  const state = stateOfTool(tool)
  const pin = pinOf(usePins(), tool)
  return (
    <Part level="h2" title="Decision">
      <p className="row">
        <DecisionBadge outcome={tool.outcome} mayStill={tool.mayStill} />
        {state !== undefined && <StateBadge state={state} />}
        <PinNotes pin={pin} />
        <span className="dim">{tool.visible ? 'Listed.' : 'Not listed.'}</span>
      </p>
      <Reasons reasons={tool.reasons} none={tool.mayStill ? undefined : 'No rule denies it or asks about it.'} />
      <MayStill mayStill={body?.mayStill} />
      <HaltButton target={{ tool: tool.id }} label="Halt this tool…" />
    </Part>
  )
}

function Details({ tool, body, whose }: Omit<FactsProps, 'callers'>): ReactElement {
  const { kind, title, wireName, tags, description } = tool
  const { groups = [], limits } = body ?? {}
  return (
    <Part level="h2" title="Details">
      <dl className="facts">
        <Fact name="Kind">{kind}</Fact>
        {title !== undefined && (
          <Fact name="Title">
            <Exact text={title} />
          </Fact>
        )}
        <Fact name="Name on the wire">{wireName === '' ? 'none' : <Exact text={wireName} className="id" />}</Fact>
        {tags.length > 0 && (
          <Fact name="Tags">
            <span className="row">
              {tags.map((tag) => (
                <Exact key={tag} text={tag} className="tag" />
              ))}
            </span>
          </Fact>
        )}
        {groups.length > 0 && (
          <Fact name="Groups">
            <Ids ids={groups} linkOf={(group) => linkTo('tools', { q: `group:${group}`, ...whose })} />
          </Fact>
        )}
        {limits && (
          <Fact name="Limits">
            {limits.length === 0 ? 'none' : <Exact text={limits.map(limitText).join(', ')} className="id" />}
          </Fact>
        )}
        <Fact name="Description">
          <Exact text={description === '' ? 'none' : description} className="whole" />
        </Fact>
      </dl>
    </Part>
  )
}

function Definition({ body }: { body: ToolBody }): ReactElement {
  const { inputSchema, outputSchema, annotations, exports } = body
  return (
    <>
      <Part level="h2" title="Input">
        <JsonBlock value={inputSchema} label="Input schema" />
      </Part>
      {outputSchema !== undefined && (
        <Part level="h2" title="Output">
          <JsonBlock value={outputSchema} label="Output schema" />
        </Part>
      )}
      <Part level="h2" title="Provider exports">
        <Exports exports={exports} />
      </Part>
      {isFilled(annotations) && (
        <Part level="h2" title="Annotations">
          <JsonBlock value={annotations} label="Annotations" />
        </Part>
      )}
    </>
  )
}

function RecentCalls({ tool }: { tool: string }): ReactElement {
  const { data, error } = useApi<AuditBody>({
    key: ['audit', 'recent', tool],
    path: '/api/audit',
    parameters: { tool, limit: RECENT },
    everyMs: REFRESH_MS,
  })
  if (error && !data) return <Failed error={error} />
  if (!data) return <Loading what="the calls" />
  if (data.records.length === 0) return <p className="dim">No calls yet.</p>
  return (
    <>
      <ul className="recent">
        {data.records.map((record) => (
          <li key={record.seq}>
            <EventBadge record={record} />
            <a href={linkTo('live', { tool, record: String(record.seq) })}>
              <Ago ms={Date.parse(record.ts)} />
            </a>
            {record.user_id !== undefined && <Exact text={record.user_id} />}
            <span className="dim">
              {record.duration_ms !== undefined && `${formatDuration(record.duration_ms)} `}
              <Exact text={explainRecord(record)} />
            </span>
          </li>
        ))}
      </ul>
      <a href={linkTo('calls', { tool })}>All calls of it</a>
    </>
  )
}

function isFilled(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/** The tool's definition for each provider, with its warnings and its tokens. */
function Exports({ exports }: { exports: readonly ToolExport[] }): ReactElement {
  const [first] = exports
  if (!first) return <p className="dim">It is not exported for any provider.</p>
  return (
    <Tabs.Root className="tabs" defaultValue={first.target} activationMode="automatic">
      <Tabs.List className="tab-list" aria-label="Providers">
        {exports.map(({ target, tokens, warnings, errors }) => (
          <Tabs.Trigger key={target} value={target} className="tab">
            {target}
            <span className="dim">{tokens === undefined ? '' : `${formatNumber(tokens)} tokens`}</span>
            {errors.length > 0 && <Badge word={count(errors.length, 'error')} look="bad" />}
            {warnings.length > 0 && <Badge word={count(warnings.length, 'warning')} look="ask" />}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      {exports.map(({ target, definition, warnings, errors }) => (
        <Tabs.Content key={target} value={target} className="tab-panel">
          {[...errors, ...warnings].length > 0 && (
            <ul className="stack tight notes">
              {errors.map((text) => (
                <li key={text} className="problem">
                  <Exact text={text} />
                </li>
              ))}
              {warnings.map((text) => (
                <li key={text}>
                  <Exact text={text} />
                </li>
              ))}
            </ul>
          )}
          <JsonBlock value={definition} label={`Definition for ${target}`} />
        </Tabs.Content>
      ))}
    </Tabs.Root>
  )
}
