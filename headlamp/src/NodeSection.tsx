import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Answered } from './Answered';
import { type NodeRefusalsFound, paths, type Search, useAnswer } from './api';
import { PageLink } from './PageLink';
import { useTexts, visible } from './text';

export interface NodeSectionProps {
  name: string;
  cluster: string;
}

/** For which reasons the node refused pods within a week. */
export function NodeSection({ name, cluster }: NodeSectionProps) {
  const { t } = useTexts();
  const search = useAnswer<Search>(paths.refusalsOfNode(name), cluster, undefined);
  return (
    <SectionBox title={t('Pods refused within seven days')}>
      <Answered outcome={search}>
        {answer => (
          <>
            <Refusals refusals={answer.nodes ?? []} />
            <PageLink path={`/ui/nodes/${name}`} />
          </>
        )}
      </Answered>
    </SectionBox>
  );
}

function Refusals({ refusals }: { refusals: NodeRefusalsFound[] }) {
  const { t, language } = useTexts();
  return (
    <SimpleTable
      columns={[
        { label: t('Refusal'), getter: (each: NodeRefusalsFound) => visible(each.reason) },
        { label: t('Attempts'), getter: (each: NodeRefusalsFound) => each.attempts },
        { label: t('Pods'), getter: (each: NodeRefusalsFound) => each.pods },
        {
          label: t('Last'),
          getter: (each: NodeRefusalsFound) =>
            new Date(each.last_started_at).toLocaleString(language),
        },
      ]}
      data={refusals}
      emptyMessage={t('It refused no pod.')}
    />
  );
}
