import * as Tabs from '@radix-ui/react-tabs'
import type { ReactElement, ReactNode } from 'react'
import { linkTo } from '../address.ts'
import { explainRecord } from '../audit-feed.ts'
import { count, formatDuration, formatNumber, limitText } from '../format.ts'
import { type Choose, useAddress, useApi } from '../hooks.ts'
import { EventBadge, DecisionBadge, StateBadge, PinNotes, usePins } from '../parts/badges.tsx'
import { CallerChoice } from '../parts/caller-choice.tsx'
import { Exact, JsonBlock } from '../parts/exact.tsx'
import { HaltButton } from '../parts/halt-dialog.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
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
  const [{ choices }, choose] = useAddress()
  const id = choices.get('id') ?? ''
  const custom = choices.get('caller') ?? ''
  const callers = useCallers().data?.callers ?? []
  const as = choices.get('as') ?? (custom === '' ? (callers[0]?.user ?? '') : '')
  const app = choices.get('app') ?? ''
  const whose = { as, caller: custom, app }
  const isKnown = as !== '' || custom !== ''
  const whole = useApi<ToolBody>({
    key: ['tool', id, as, custom, app],
    path: '/api/tool',
    parameters: { tool: id, ...whose },
    everyMs: REFRESH_MS,
    enabled: id !== '' && isKnown,
  })
  const isAbsent = whole.error?.isAbsent === true
  const list = useTools({ ...whose, everyMs: REFRESH_MS, enabled: isAbsent })
  const tool = whole.data?.tool ?? list.data?.tools.find((one) => one.id === id)
  const error = isAbsent ? list.error : whole.error
  return (
    <>
      <p className="crumbs">
        <a href={linkTo('tools', whose)}>Tools</a>
      </p>
      <div className="page-head">
        <h1>
          <Exact text={id === '' ? 'No tool' : id} className="id" />
        </h1>
        <CallerBar callers={callers} as={as} custom={custom} choose={choose} />
      </div>
      {id === '' || (!tool && (error?.code === 'tool_unknown' || list.data)) ? (
        <Empty title="Unknown tool">
          <p>{error?.message ?? 'Its server may have removed it.'}</p>
        </Empty>
      ) : (
        !tool && error && <Failed error={error} retry={whole.refetch} />
      )}
      {!tool && !error && id !== '' && !list.data && <Loading what="the tool" />}
      {tool && <Facts key={tool.id} tool={tool} body={whole.data} whose={whose} callers={callers} />}
    </>
  )
}

type CallerBarProps = Parameters<typeof CallerChoice>[0] & { readonly choose: Choose }

function CallerBar(props: CallerBarProps): ReactElement {
  return (
    <div className="toolbar tight">
      <CallerChoice {...props} />
    </div>
  )
}

interface FactsProps {
  readonly tool: ToolRow
  /** Absent if the gateway does not send it. */
  readonly body: ToolBody | undefined
  readonly whose: Readonly<Record<string, string>>
  readonly callers: CallersBody['callers']
}

function Facts({ tool, body, whose, callers }: FactsProps): ReactElement {
  const state = stateOfTool(tool)
  const pin = pinOf(usePins(), tool)
  return (
    <div className="sheet">
      <Part title="Decision">
        <p className="badges">
          <DecisionBadge outcome={tool.outcome} mayStill={tool.mayStill} />
          {state !== undefined && <StateBadge state={state} />}
          <PinNotes pin={pin} />
          <span className="dim">{tool.visible ? 'Listed.' : 'Not listed.'}</span>
        </p>
        <Reasons reasons={tool.reasons} none={tool.mayStill ? undefined : 'No rule denies it or asks about it.'} />
        <MayStill mayStill={body?.mayStill} />
        <HaltButton target={{ tool: tool.id }} label="Halt this tool…" />
      </Part>
      {body && (
        <Part title="Playground">
          <Playground tool={tool} inputSchema={body.inputSchema} whose={whose} callers={callers} />
        </Part>
      )}
      <Part title="Details">
        <dl className="facts">
          <Fact name="Kind">{tool.kind}</Fact>
          {tool.title !== undefined && (
            <Fact name="Title">
              <Exact text={tool.title} />
            </Fact>
          )}
          <Fact name="Name on the wire">
            {tool.wireName === '' ? 'none' : <Exact text={tool.wireName} className="id" />}
          </Fact>
          {tool.tags.length > 0 && (
            <Fact name="Tags">
              <span className="badges">
                {tool.tags.map((tag) => (
                  <Exact key={tag} text={tag} className="tag" />
                ))}
              </span>
            </Fact>
          )}
          {body && body.groups.length > 0 && (
            <Fact name="Groups">
              {body.groups.map((group, i) => (
                <span key={group}>
                  {i > 0 && ', '}
                  <a href={linkTo('tools', { q: `group:${group}`, ...whose })}>
                    <Exact text={group} className="id" />
                  </a>
                </span>
              ))}
            </Fact>
          )}
          {body && (
            <Fact name="Limits">
              {body.limits.length === 0 ? (
                'none'
              ) : (
                <Exact text={body.limits.map(limitText).join(', ')} className="id" />
              )}
            </Fact>
          )}
          <Fact name="Description">
            <span className="whole">
              <Exact text={tool.description === '' ? 'none' : tool.description} />
            </span>
          </Fact>
        </dl>
      </Part>
      {body ? (
        <>
          <Part title="Input">
            <JsonBlock value={body.inputSchema} label="Input schema" />
          </Part>
          {body.outputSchema !== undefined && (
            <Part title="Output">
              <JsonBlock value={body.outputSchema} label="Output schema" />
            </Part>
          )}
          <Part title="Provider exports">
            <Exports exports={body.exports} />
          </Part>
          {isFilled(body.annotations) && (
            <Part title="Annotations">
              <JsonBlock value={body.annotations} label="Annotations" />
            </Part>
          )}
        </>
      ) : (
        <p className="dim">This gateway does not report the schema, the exports and the limits of a tool.</p>
      )}
      <Part title="Recent calls">
        <RecentCalls tool={tool.id} />
      </Part>
    </div>
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

function Part({ title, children }: { title: string; children: ReactNode }): ReactElement {
  return (
    <section className="part">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }): ReactElement {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

function isFilled(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/** The tool's definition for each provider, with its warnings and its tokens. */
export function Exports({ exports }: { exports: readonly ToolExport[] }): ReactElement {
  const [first] = exports
  if (!first) return <p className="dim">It is not exported for any provider.</p>
  return (
    <Tabs.Root className="tabs" defaultValue={first.target} activationMode="automatic">
      <Tabs.List className="tab-list" aria-label="Providers">
        {exports.map(({ target, tokens, warnings, errors }) => (
          <Tabs.Trigger key={target} value={target} className="tab">
            {target}
            <span className="dim">{tokens === undefined ? '' : `${formatNumber(tokens)} tokens`}</span>
            {errors.length > 0 && <span className="badge bad">{count(errors.length, 'error')}</span>}
            {warnings.length > 0 && <span className="badge ask">{count(warnings.length, 'warning')}</span>}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      {exports.map(({ target, definition, warnings, errors }) => (
        <Tabs.Content key={target} value={target} className="tab-panel">
          {[...errors, ...warnings].length > 0 && (
            <ul className="notes">
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
