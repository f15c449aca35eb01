import * as Tabs from '@radix-ui/react-tabs'
import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { count, formatNumber } from '../format.ts'
import { useApi, useChoices } from '../hooks.ts'
import { Badge } from '../parts/badges.tsx'
import { CallerChoice } from '../parts/caller-choice.tsx'
import { Part } from '../parts/drawer.tsx'
import { Exact, JsonBlock } from '../parts/exact.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { Playground } from '../parts/playground.tsx'
import { Decision, Details, RecentCalls, type ToolProps } from '../parts/tool-facts.tsx'
import type { ToolBody, ToolExport } from '../wire.ts'
import { callerOf } from '../callers-query.ts'
import { useCallers } from '../callers.ts'
import { useTools } from '../tools.ts'

const REFRESH_MS = 2000

/** The page of one tool, for one caller. */
export function ToolPage(): ReactElement {
  const of = useChoices()
  const [id, custom, app] = [of('id'), of('caller'), of('app')]
  const callers = useCallers(callerOf(of('as'))).data?.callers ?? []
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
          <CallerChoice current={callers[0]} as={as} custom={custom} />
        </div>
      </PageHead>
      {isUnknown ? (
        <Empty title="Unknown tool">
          <p>{error?.message ?? 'Its server may have removed it.'}</p>
        </Empty>
      ) : (
        <Pending answer={{ data: tool, error, refetch: whole.refetch }} what="the tool" />
      )}
      {tool && <Facts key={tool.id} tool={tool} body={whole.data} whose={whose} />}
    </>
  )
}

function Facts({ tool, body, whose }: ToolProps): ReactElement {
  return (
    <div className="stack sheet">
      <Decision tool={tool} body={body} level="h2" />
      {body && (
        <Part level="h2" title="Playground">
          <Playground tool={tool} inputSchema={body.inputSchema} whose={whose} />
        </Part>
      )}
      <Details tool={tool} body={body} whose={whose} level="h2" />
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
