import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Typography } from '@mui/material';
import { Answered } from './Answered';
import {
  type Diagnosis,
  type NodesAlike,
  paths,
  type PodNodeGroups,
  type SuggestedChange,
  type Suggestions,
  useAnswer,
} from './api';
import { PageLink } from './PageLink';
import { Sentence, useTexts, visible } from './text';

export interface PodSectionProps {
  namespace: string;
  name: string;
  cluster: string;
  /** The resource version of the pod: when it is another, the answers may be too. */
  revision?: string;
}

/** Why the pod waits, what would have to change, and its nodes by refusal. */
export function PodSection({ namespace, name, cluster, revision }: PodSectionProps) {
  const { t } = useTexts();
  const diagnosis = useAnswer<Diagnosis>(paths.diagnosis(namespace, name), cluster, revision);
  return (
    <SectionBox title={t('Scheduling')}>
      <Answered outcome={diagnosis}>
        {answer => (
          <>
            <Typography variant="h6" component="p">
              <Sentence text={answer.headline} />
            </Typography>
            {answer.background && (
              <Typography>
                <Sentence text={answer.background} />
              </Typography>
            )}
            {answer.obstacle && (
              <Typography color="text.secondary">
                <Sentence text={answer.obstacle.remedy} />
              </Typography>
            )}
            {answer.state === 'refused' && (
              <Refused namespace={namespace} name={name} cluster={cluster} revision={revision} />
            )}
            <PageLink path={`/ui/pods/${namespace}/${name}`} />
          </>
        )}
      </Answered>
    </SectionBox>
  );
}

function Refused({ namespace, name, cluster, revision }: PodSectionProps) {
  const { t } = useTexts();
  const suggestions = useAnswer<Suggestions>(paths.suggestions(namespace, name), cluster, revision);
  const nodes = useAnswer<PodNodeGroups>(paths.nodeGroups(namespace, name), cluster, revision);
  return (
    <>
      <Heading>{t('What would have to change')}</Heading>
      <Answered outcome={suggestions}>{answer => <Changes changes={answer.items} />}</Answered>
      <Heading>{t('Nodes by refusal')}</Heading>
      <Answered outcome={nodes}>{answer => <RefusedNodes groups={answer.groups} />}</Answered>
    </>
  );
}

function Heading({ children }: { children: string }) {
  return (
    <Typography variant="subtitle1" component="h3" sx={{ mt: 2 }}>
      {children}
    </Typography>
  );
}

function Changes({ changes }: { changes: SuggestedChange[] }) {
  const { t } = useTexts();
  const actors = { you: t('you'), administrator: t('an administrator'), wait: t('waiting') };
  return (
    <SimpleTable
      columns={[
        {
          label: t('It fits after any one of these'),
          gridTemplate: '4fr',
          getter: (each: SuggestedChange) => <Sentence text={each.sentence} />,
        },
        {
          label: t('By'),
          gridTemplate: '1fr',
          getter: (each: SuggestedChange) => actors[each.who_acts],
        },
        {
          label: t('Node'),
          gridTemplate: '1fr',
          getter: (each: SuggestedChange) => visible(each.node),
        },
      ]}
      data={changes}
      emptyMessage={t('No small change was found after which it fits.')}
    />
  );
}

function RefusedNodes({ groups }: { groups: NodesAlike[] }) {
  const { t } = useTexts();
  return (
    <SimpleTable
      columns={[
        {
          label: t('Nodes'),
          gridTemplate: '1fr',
          getter: (each: NodesAlike) => each.nodes.length.toLocaleString(),
        },
        {
          label: t('Refusal'),
          gridTemplate: '5fr',
          getter: (each: NodesAlike) => visible(each.reason),
        },
        {
          label: t('Container'),
          gridTemplate: '2fr',
          getter: (each: NodesAlike) => visible(each.container),
        },
        {
          label: t('Names'),
          gridTemplate: '3fr',
          getter: (each: NodesAlike) => <Names names={each.nodes} />,
        },
      ]}
      data={groups.filter(each => each.is_refused)}
      emptyMessage={t('No node refused it.')}
    />
  );
}

const SHOWN_NAMES = 5;

function Names({ names }: { names: string[] }) {
  const { t } = useTexts();
  const [first, rest] = [names.slice(0, SHOWN_NAMES), names.slice(SHOWN_NAMES)];
  return (
    <>
      {visible(first.join(', '))}
      {rest.length > 0 && (
        <details>
          <summary>{t('{{count}} more', { count: rest.length })}</summary>
          {visible(rest.join(', '))}
        </details>
      )}
    </>
  );
}
