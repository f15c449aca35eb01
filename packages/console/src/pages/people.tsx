import { type ReactElement, useContext } from 'react'
import { linkTo } from '../address.ts'
import { useAddress } from '../hooks.ts'
import { mayManageKeys } from '../keys.ts'
import { AllKeys } from '../parts/key-table.tsx'
import { CallerMatrix } from '../parts/matrix.tsx'
import { PeopleList } from '../parts/people-list.tsx'
import { Session } from '../session.ts'

interface View {
  readonly name: string
  readonly title: string
  readonly Content: () => ReactElement
  /** Only for people who may manage keys. The gateway decides; here it is hidden. */
  readonly isForOperators?: true
}

const VIEWS: readonly [View, ...View[]] = [
  { name: '', title: 'People', Content: PeopleList },
  { name: 'matrix', title: 'Who sees what', Content: CallerMatrix },
  { name: 'keys', title: 'Keys', Content: AllKeys, isForOperators: true },
]

/** Who can use this gateway, and how. */
export function PeoplePage(): ReactElement {
  const [{ choices }] = useAddress()
  const session = useContext(Session)
  const views = VIEWS.filter(({ isForOperators }) => !isForOperators || (session && mayManageKeys(session)))
  const { name, Content } = VIEWS.find((view) => view.name === choices.get('view')) ?? VIEWS[0]
  return (
    <>
      <div className="page-head">
        <h1>People and keys</h1>
        <p>Who can use this gateway, and how.</p>
      </div>
      <nav className="views" aria-label="Views of people">
        {views.map((view) => (
          <a
            key={view.name}
            href={linkTo('people', { view: view.name })}
            aria-current={view.name === name ? 'page' : undefined}
          >
            {view.title}
          </a>
        ))}
      </nav>
      <Content />
    </>
  )
}
