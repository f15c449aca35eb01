import { type ReactElement, useDeferredValue, useMemo } from 'react'
import { formatIn, formatNumber } from '../format.ts'
import { type Choose, useAddress, useApi, useNow, useWhileCounting } from '../hooks.ts'
import { wordOfUse } from '../keys.ts'
import { countByPerson, haltsOn, inOrder, largestList, ORDER_NAMES, OWN, personId, rolesOf, whoKey } from '../people.ts'
import { useWaiting } from '../pending.ts'
import type { HaltRow, HaltsBody, PeopleBody, PersonRow } from '../wire.ts'
import { Exact } from './exact.tsx'
import { OneOf, SearchField } from './filters.tsx'
import { Empty, Failed, Loading } from './panels.tsx'
import { PersonDrawer } from './person-drawer.tsx'
import { TenantTag, useManyTenants } from './tenant-tag.tsx'
import { Ago } from './when.tsx'
import { WindowedTable } from './windowed-table.tsx'

const REFRESH_MS = 8000
const COLUMNS = ['Name', 'Roles', 'Uses', 'Keys', 'Tools', 'Tokens', 'Calls', 'Last call', 'State'] as const
const NO_FILTER = { text: '', tenant: '', role: '', order: '' }
const NO_HALTS: readonly HaltRow[] = []

/** Everybody who can use the gateway, or has lately. */
export function PeopleList(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const of = (name: string): string => choices.get(name) ?? ''
  const filters = useDeferredValue({ text: of('text'), tenant: of('tenant'), role: of('role') })
  const { data, error, refetch } = useApi<PeopleBody>({
    key: ['people', filters],
    path: '/api/people',
    parameters: filters,
    everyMs: REFRESH_MS,
  })
  useWhileCounting(data?.isComplete, refetch)
  const halts = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts' }).data?.halts ?? NO_HALTS
  const pending = useWaiting().data?.approvals
  const waiting = useMemo(() => countByPerson(pending ?? []), [pending])
  const people = useMemo(() => inOrder(data?.people ?? [], of('order')), [data, of('order')])
  const open = of('open')
  const isFiltered = Object.keys(NO_FILTER).some((name) => of(name) !== '')
  return (
    <>
      <Filters choices={choices} choose={choose} body={data} isFiltered={isFiltered} />
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the people" />}
      {data && (
        <p className="feed-bar dim" role="status">
          {data.total > people.length
            ? `The first ${formatNumber(people.length)} of ${formatNumber(data.total)} by name: narrow the filter for others`
            : people.length === 1
              ? '1 person'
              : `${formatNumber(people.length)} people`}
        </p>
      )}
      {data && people.length === 0 && (
        <Empty title="Nobody matches">
          <button type="button" onClick={() => choose(NO_FILTER)}>
            Clear the filter
          </button>
        </Empty>
      )}
      {people.length > 0 && (
        <WindowedTable
          rows={people}
          caption="People, and the agents that act for them"
          columns={COLUMNS}
          prefix="person"
          className="people"
          keyOf={personId}
          wide={(row) => <Wide row={row} waiting={waiting.get(whoKey(row)) ?? 0} halts={haltsOn(row, halts)} />}
          narrow={(row) => <Narrow row={row} waiting={waiting.get(whoKey(row)) ?? 0} halts={haltsOn(row, halts)} />}
        />
      )}
      {open !== '' && data && (
        <PersonDrawer
          key={open}
          id={open}
          held={data.people.find((row) => (open === OWN ? row.isSelf : personId(row) === open))}
          close={() => choose({ open: '' })}
        />
      )}
    </>
  )
}

interface FiltersProps {
  readonly choices: ReadonlyMap<string, string>
  readonly choose: Choose
  readonly body: PeopleBody | undefined
  readonly isFiltered: boolean
}

function Filters({ choices, choose, body, isFiltered }: FiltersProps): ReactElement {
  const of = (name: string): string => choices.get(name) ?? ''
  const { tenants = [], roles = [] } = body ?? {}
  const isMany = useManyTenants()
  return (
    <div className="toolbar">
      <SearchField example="name, role, tenant or client" value={of('text')} apply={(text) => choose({ text })} />
      {(isMany || of('tenant') !== '') && (
        <OneOf
          label="Tenant"
          every="all tenants"
          values={tenants}
          value={of('tenant')}
          apply={(tenant) => choose({ tenant })}
        />
      )}
      <OneOf label="Role" every="all roles" values={roles} value={of('role')} apply={(role) => choose({ role })} />
      <OneOf label="Order" every="name" values={ORDER_NAMES} value={of('order')} apply={(order) => choose({ order })} />
      {isFiltered && (
        <button type="button" className="quiet" onClick={() => choose(NO_FILTER)}>
          Clear
        </button>
      )}
    </div>
  )
}

interface RowProps {
  readonly row: PersonRow
  readonly waiting: number
  readonly halts: readonly HaltRow[]
}

function Wide({ row, waiting, halts }: RowProps): ReactElement {
  const list = largestList(row)
  return (
    <>
      <td>
        <Opener row={row} /> <TenantTag tenant={row.tenant} />
      </td>
      <td>{rolesOf(row).length === 0 ? <None /> : <Exact text={rolesOf(row).join(', ')} />}</td>
      <td className="dim">{usesOf(row)}</td>
      <td>
        <KeysCell row={row} />
      </td>
      <td className="n">{list?.visible === undefined ? <None /> : formatNumber(list.visible)}</td>
      <td className="n">{list?.tokens === undefined ? <None /> : formatNumber(list.tokens)}</td>
      <td className="n">{row.calls === 0 ? <None /> : formatNumber(row.calls)}</td>
      <td>{row.lastCallAt === undefined ? <None /> : <Ago ms={row.lastCallAt} />}</td>
      <td>
        <State row={row} waiting={waiting} halts={halts} />
      </td>
    </>
  )
}

function Narrow({ row, waiting, halts }: RowProps): ReactElement {
  const list = largestList(row)
  return (
    <>
      <span className="line">
        <Opener row={row} />
        <TenantTag tenant={row.tenant} />
        <State row={row} waiting={waiting} halts={halts} />
        <span className="end dim">{row.lastCallAt !== undefined && <Ago ms={row.lastCallAt} />}</span>
      </span>
      <span className="line dim">
        <span>{usesOf(row)}</span>
        {list?.visible !== undefined && <span>{formatNumber(list.visible)} tools</span>}
        <Exact text={rolesOf(row).join(', ')} />
      </span>
    </>
  )
}

function None(): ReactElement {
  return <span className="dim">–</span>
}

/** The name opens the person. */
function Opener({ row }: { row: PersonRow }): ReactElement {
  return (
    <a className="opener strong" data-focus data-person={personId(row)} href={personLink(row)}>
      <Exact text={row.name} />
      {row.isSelf && <span className="dim"> (you)</span>}
    </a>
  )
}

/** Returns the current address with the person added, so that the filters stay. */
function personLink(row: PersonRow): string {
  const [, query = ''] = location.hash.split('?')
  const choices = new URLSearchParams(query)
  choices.set('open', personId(row))
  return `#/people?${choices.toString()}`
}

/** `agent, person`: what their keys are for; or how they are known. */
export function usesOf({ callers, client, calls, isSelf, keys }: PersonRow): string {
  const uses = [...new Set(callers.map(wordOfUse))].toSorted()
  if (uses.length > 0) return uses.join(', ')
  if (calls > 0) return client === undefined ? 'signed in' : `signed in by ${client}`
  return keys === undefined || isSelf ? 'signed in' : 'gone'
}

function KeysCell({ row: { keys } }: { row: PersonRow }): ReactElement {
  const nowMs = useNow(30_000)
  if (!keys) return <None />
  const { count, unusable, expiresAt } = keys
  return (
    <>
      {formatNumber(count)}
      {unusable > 0 && <span className="problem"> {formatNumber(unusable)} unusable</span>}
      {expiresAt !== undefined && <span className="dim"> ends {formatIn(expiresAt, nowMs)}</span>}
    </>
  )
}

function State({ row: { connections }, waiting, halts }: RowProps): ReactElement {
  return (
    <span className="marks">
      {halts.length > 0 && <span className="badge deny">halted</span>}
      {waiting > 0 && <span className="badge ask">{formatNumber(waiting)} waiting</span>}
      {connections && connections.connected > 0 && (
        <span className="dim">
          {formatNumber(connections.connected)} of {formatNumber(connections.wanted)} connected
        </span>
      )}
    </span>
  )
}
