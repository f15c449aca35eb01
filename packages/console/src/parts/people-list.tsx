import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { type ReactElement, useCallback, useDeferredValue, useMemo } from 'react'
import { getJson } from '../api.ts'
import type { FilterGrammar } from '../filter-text.ts'
import { formatIn, formatNumber } from '../format.ts'
import { useApi, useChoices, useNow, useWhileCounting } from '../hooks.ts'
import { wordOfUse } from '../keys.ts'
import {
  countByPerson,
  haltsOn,
  joinPages,
  largestList,
  lastSeenOf,
  ORDER_NAMES,
  orderOf,
  OWN,
  personId,
  rolesOf,
  whoKey,
} from '../people.ts'
import { useWaiting } from '../pending.ts'
import type { HaltRow, HaltsBody, PeopleBody, PersonOrder, PersonRow } from '../wire.ts'
import { Badge } from './badges.tsx'
import { type Column, None, Opener, TwoLines } from './cells.tsx'
import { Exact } from './exact.tsx'
import { FilterBox } from './filter-box.tsx'
import { FilterBar, NoMatch, OneOf } from './filters.tsx'
import { Pending } from './panels.tsx'
import { PersonDrawer, RolesFrom } from './person-drawer.tsx'
import { Split } from './split.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { Ago, Counting } from './when.tsx'
import { WindowedTable } from './windowed-table.tsx'

const REFRESH_MS = 8000
const FILTERS = ['text', 'tenant', 'role', 'order'] as const
const NO_HALTS: readonly HaltRow[] = []

/** Shows everybody who can use the gateway, or has used it recently. */
export function PeopleList(): ReactElement {
  const of = useChoices()
  const filters = useDeferredValue({
    text: of('text'),
    tenant: of('tenant'),
    role: of('role'),
    order: orderOf(of('order')),
  })
  const answer = usePeople(filters)
  const { data: pages, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = answer
  const data = pages?.pages[0]
  useWhileCounting(data?.isComplete, refetch)
  const people = useMemo(() => joinPages(pages?.pages ?? []), [pages])
  const open = of('open')
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  return (
    <>
      <Filters body={data} />
      <Pending answer={answer} what="the people" />
      {data && (
        <p className="row loose feed-bar dim" role="status">
          {data.total > people.length
            ? `The first ${formatNumber(people.length)} of ${formatNumber(data.total)} in this order, more below`
            : people.length === 1
              ? '1 person'
              : `${formatNumber(people.length)} people`}
          {!data.isComplete && (
            <span>
              {data.countedTo === undefined ? (
                'tools are being counted…'
              ) : (
                <>
                  calls <Counting to={data.countedTo} />
                </>
              )}
            </span>
          )}
        </p>
      )}
      {data && people.length === 0 && <NoMatch title="Nobody matches" names={FILTERS} />}
      <Split
        detail={
          open !== '' &&
          data && (
            <PersonDrawer
              key={open}
              id={open}
              held={people.find((row) => (open === OWN ? row.isSelf : personId(row) === open))}
            />
          )
        }
      >
        {people.length > 0 && <People people={people} onEnd={loadMore} />}
      </Split>
    </>
  )
}

function usePeople(filters: Readonly<Record<'role' | 'tenant' | 'text', string> & { order: PersonOrder | undefined }>) {
  return useInfiniteQuery({
    queryKey: ['people', filters],
    queryFn: ({ pageParam, signal }) =>
      getJson<PeopleBody>('/api/people', { query: { ...filters, from: pageParam }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ total }, pages) => {
      const loaded = pages.reduce((sum, page) => sum + page.people.length, 0)
      return loaded < total ? loaded : undefined
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

const GRAMMAR: FilterGrammar = {
  keys: [
    { name: 'tenant', about: 'the tenant' },
    { name: 'role', about: 'a role of the person' },
  ],
  text: 'text',
}

function Filters({ body: { tenants = [], roles = [] } = {} }: { body: Partial<PeopleBody> | undefined }): ReactElement {
  return (
    <FilterBar names={FILTERS}>
      <FilterBox
        grammar={GRAMMAR}
        example="name or client, tenant:acme role:clerk"
        seen={(key) => (key === 'tenant' ? tenants : roles)}
        isEager
      />
      <OneOf name="order" label="Order" every="name" values={ORDER_NAMES} />
    </FilterBar>
  )
}

function People({ people, onEnd }: { people: readonly PersonRow[]; onEnd: () => void }): ReactElement {
  const halts = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts' }).data?.halts ?? NO_HALTS
  const pending = useWaiting().data?.approvals
  const state = useMemo(() => {
    const waiting = countByPerson(pending ?? [])
    return (row: PersonRow) => (
      <State row={row} waiting={waiting.get(whoKey(row)) ?? 0} isHalted={haltsOn(row, halts).length > 0} />
    )
  }, [pending, halts])
  const columns = useMemo(() => [...COLUMNS, { name: 'State', className: 'wraps', cell: state }], [state])
  const narrow = useMemo(() => narrowWith(state), [state])
  return (
    <WindowedTable
      rows={people}
      caption="People, and the agents that act for them"
      columns={columns}
      className="people"
      keyOf={personId}
      narrow={narrow}
      onEnd={onEnd}
    />
  )
}

const COLUMNS: readonly Column<PersonRow>[] = [
  {
    name: 'Name',
    width: '22%',
    className: 'wraps',
    cell: (row) => (
      <>
        <Name row={row} /> <TenantTag tenant={row.tenant} />
      </>
    ),
  },
  {
    name: 'Roles',
    className: 'wraps',
    cell: (row) => (
      <>
        {rolesOf(row).length === 0 ? <None /> : <Exact text={rolesOf(row).join(', ')} />} <RolesFrom row={row} />
      </>
    ),
  },
  { name: 'Uses', width: '8rem', from: 900, className: 'dim wraps', cell: usesOf },
  { name: 'Keys', from: 1000, className: 'wraps', cell: (row) => <KeysCell row={row} /> },
  { name: 'Tools', width: '4.5rem', isNumber: true, cell: (row) => numberOf(largestList(row)?.visible) },
  { name: 'Tokens', width: '4.5rem', from: 1000, isNumber: true, cell: (row) => numberOf(largestList(row)?.tokens) },
  { name: 'Calls', width: '4.5rem', isNumber: true, cell: ({ calls }) => numberOf(calls || undefined) },
  {
    name: 'Last seen',
    width: '7rem',
    from: 760,
    cell: (row) => <LastSeen row={row} />,
  },
]

function numberOf(n: number | undefined): ReactElement | string {
  return n === undefined ? <None /> : formatNumber(n)
}

function narrowWith(state: (row: PersonRow) => ReactElement): (row: PersonRow) => ReactElement {
  return (row) => {
    const list = largestList(row)
    return (
      <TwoLines
        first={
          <>
            <Name row={row} />
            <TenantTag tenant={row.tenant} />
            {state(row)}
          </>
        }
        end={
          <span className="dim">
            <LastSeen row={row} />
          </span>
        }
        second={
          <>
            <span>{usesOf(row)}</span>
            {list?.visible !== undefined && <span>{formatNumber(list.visible)} tools</span>}
            <Exact text={rolesOf(row).join(', ')} />
            <RolesFrom row={row} />
          </>
        }
      />
    )
  }
}

function LastSeen({ row }: { row: PersonRow }): ReactElement {
  const ms = lastSeenOf(row)
  return ms === undefined ? <None /> : <Ago ms={ms} />
}

/** Shows the name. A press opens the person. */
function Name({ row }: { row: PersonRow }): ReactElement {
  return (
    <Opener id={personId(row)} className="strong">
      <Exact text={row.name} />
      {row.label !== undefined && row.label !== row.name && (
        <span className="dim">
          {' '}
          <Exact text={row.label} />
        </span>
      )}
      {row.isSelf && <span className="dim"> (you)</span>}
    </Opener>
  )
}

/** Returns the uses of a person's keys, such as `agent, person`, or otherwise how the person is known. */
function usesOf({ callers, client, clients = [], calls, isSelf, keys, cameBy }: PersonRow): string {
  const uses = [...new Set(callers.map(wordOfUse))].toSorted()
  if (uses.length > 0) return uses.join(', ')
  if (cameBy === 'run') return 'in runs'
  if (cameBy === 'token' && clients[0] !== undefined) return `signed in by ${clients[0]}`
  if (cameBy !== undefined && cameBy !== 'key') return 'signed in'
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

interface StateProps {
  readonly row: PersonRow
  readonly waiting: number
  readonly isHalted: boolean
}

function State({ row: { connections }, waiting, isHalted }: StateProps): ReactElement {
  return (
    <span className="marks">
      {isHalted && <Badge word="halted" look="bad" />}
      {waiting > 0 && <Badge word={`${formatNumber(waiting)} waiting`} look="ask" />}
      {connections && connections.connected > 0 && (
        <span className="dim">
          {formatNumber(connections.connected)} of {formatNumber(connections.wanted)} connected
        </span>
      )}
    </span>
  )
}
