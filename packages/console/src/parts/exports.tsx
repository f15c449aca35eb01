import * as Tabs from '@radix-ui/react-tabs'
import type { ReactElement } from 'react'
import { count, formatNumber } from '../format.ts'
import type { ToolExport } from '../wire.ts'
import { Exact } from './exact.tsx'
import { JsonBlock } from './json-block.tsx'

/** The tool as each provider is sent it, with what had to be changed for it and what it costs. */
export function Exports({ exports }: { exports: readonly ToolExport[] }): ReactElement {
  const [first] = exports
  if (!first) return <p className="dim">It is exported for no provider.</p>
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
