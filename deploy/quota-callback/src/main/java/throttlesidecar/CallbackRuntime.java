package throttlesidecar;

import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.net.ssl.SSLSocketFactory;
import org.apache.kafka.common.config.ConfigException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import throttlesidecar.decision.Budgets;
import throttlesidecar.decision.Factors;
import throttlesidecar.decision.Leak;
import throttlesidecar.decision.Scope;
import throttlesidecar.jmx.CallbackFigures;
import throttlesidecar.observability.Faults;
import throttlesidecar.observability.Journal;
import throttlesidecar.quotas.Quotas;
import throttlesidecar.reading.DocumentFile;
import throttlesidecar.reading.SidecarClient;
import throttlesidecar.reading.SidecarReader;
import throttlesidecar.reading.TlsFiles;
import throttlesidecar.refusal.Connections;
import throttlesidecar.refusal.ExcludedWriters;
import throttlesidecar.refusal.RefusalLog;
import throttlesidecar.refusal.Refusals;
import throttlesidecar.settings.Settings;
import throttlesidecar.support.Clocks;
import throttlesidecar.support.KafkaVersion;
import throttlesidecar.support.RunningTime;
import throttlesidecar.support.Sanitized;
import throttlesidecar.throttling.Enforcement;
import throttlesidecar.throttling.SelfTest;
import throttlesidecar.throttling.TagSets;
import throttlesidecar.volumes.OwnVolumePoller;
import throttlesidecar.volumes.Reserves;

/**
 * The parts of the quota callback in this JVM: its state, its threads and its JMX bean.
 *
 * <p>In combined mode Kafka makes two callbacks, the broker's and the controller's, which share one
 * registry of metrics. With two runtimes they would poll the sidecar twice and overwrite each other's
 * limits. So the first callback that joins makes the runtime, and the last one that leaves ends it.
 *
 * <p>A dedicated controller has an {@link #idle} runtime.
 */
final class CallbackRuntime {
    private static final Logger LOG = LoggerFactory.getLogger(SidecarQuotaCallback.class);
    private static final String NAME = "throttlesidecar:type=QuotaCallback";

    // Guarded by the class.
    private static CallbackRuntime shared;
    private static int members;

    final TagSets tagSets;
    final RunningTime running;
    final Quotas quotas;
    final Enforcement enforcement;
    final Refusals refusals;
    private final Connections connections;
    private final Supplier<String> selfTest;
    private final Clocks clocks;
    private final Journal journal;
    private final ExcludedWriters writers;
    private final SidecarReader reader;
    private final CallbackFigures figures;
    private final OwnVolumePoller poller;
    private final Reserves reserves;
    private final AtomicLong changes = new AtomicLong();
    private volatile Settings settings;
    private boolean wasBlind;
    private boolean wasEmergency;

    /** The authorities in use; null at first. */
    private TlsFiles tlsFiles;

    /**
     * A runtime that does nothing until it is opened.
     *
     * @param nodeId the broker's; null when it has none yet.
     * @param selfTest describes a fault of Kafka's classes; null for none.
     * @param journal receives the callback's log lines.
     */
    CallbackRuntime(
            Settings settings, Integer nodeId, TagSets tagSets, Connections connections,
            RefusalLog log, Supplier<String> selfTest, Clocks clocks, Journal journal) {
        this.settings = settings;
        this.tagSets = tagSets;
        this.connections = connections;
        this.selfTest = selfTest;
        this.clocks = clocks;
        this.running = new RunningTime(clocks);
        this.journal = journal;
        boolean forgets = KafkaVersion.forgetsRemovedKinds(KafkaVersion.read());
        quotas = new Quotas(() -> this.settings, forgets);
        writers = new ExcludedWriters(quotas::settingsChanged);
        this.settings = settings.alsoExcluding(writers::has);
        enforcement = new Enforcement(tagSets, quotas, () -> this.settings, clocks);
        refusals = new Refusals(
                connections, quotas, tagSets, enforcement, () -> this.settings, writers,
                log, clocks, running, journal);
        reader = new SidecarReader(
                settings, clients(settings), this::apply, this::headers,
                nodeId == null ? Map.of() : Map.of("Throttle-Broker", nodeId.toString()),
                enforcement.faults(), clocks, journal);
        reserves = new Reserves(
                settings.logDirs, OwnVolumePoller.Disk.SYSTEM, () -> this.settings.reserveBytes,
                reader::limit, journal, enforcement::failed);
        figures = new CallbackFigures(
                nodeId, () -> this.settings, enforcement, connections, refusals, reader, reserves);
        poller = new OwnVolumePoller(
                settings.logDirs, OwnVolumePoller.Disk.SYSTEM, reader::needsTopics, reader::see,
                this::hanging, enforcement::failed);
    }

    /**
     * The JVM's runtime, made if there is none.
     *
     * @param settings used by the first callback that joins; all callbacks of a broker have the same.
     * @param nodeId the broker's; null when it has none yet.
     */
    static CallbackRuntime join(Settings settings, Integer nodeId) {
        return join(() -> of(settings, nodeId, TagSets.SHARED));
    }

    private static CallbackRuntime of(Settings settings, Integer nodeId, TagSets tagSets) {
        return new CallbackRuntime(
                settings, nodeId, tagSets, Connections.SHARED, RefusalLog.ofBroker(),
                () -> SelfTest.failure(SidecarMetricsReporter::new), Clocks.SYSTEM, Journal.of(LOG));
    }

    /** The JVM's runtime; the supplier makes it if there is none. */
    static synchronized CallbackRuntime join(Supplier<CallbackRuntime> maker) {
        if (shared == null) {
            CallbackRuntime runtime = maker.get();
            runtime.open();
            shared = runtime;
        }
        members++;
        return shared;
    }

    /**
     * The runtime of a dedicated controller, which is not shared. It has the quotas that operators set,
     * since Kafka leaves them to the callback, and reads no sidecar.
     */
    static CallbackRuntime idle() {
        LOG.info(
                "The quota callback is off, and Kafka's own quotas apply: this node is a dedicated"
                        + " controller (process.roles=controller)");
        return of(Settings.off(), null, new TagSets());
    }

    /** Ends the JVM's runtime when the last callback leaves. */
    static synchronized void leave() {
        members--;
        if (members == 0) {
            shared.close();
            shared = null;
        }
    }

    private void open() {
        tagSets.enforcement(enforcement);
        String failure;
        try {
            failure = selfTest.get();
            tagSets.forEach(null, tagSets::install);
        } catch (LinkageError moved) {
            failure = moved.toString();
        }
        if (failure != null) {
            enforcement.faults().found(Faults.Kind.SELF_TEST, failure);
        }
        connections.refusals(refusals);
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            server.registerMBean(figures, new ObjectName(NAME));
        } catch (JMException error) {
            journal.warn("The quota callback could not be registered in JMX: " + error);
        }
        Path folder = settings.folder();
        if (folder != null) {
            DocumentFile kept = new DocumentFile(folder, clocks, journal);
            reader.keep(kept.read(), kept::write);
        }
        running.start(refusals::waits, enforcement::failed);
        poller.start();
        reader.start();
        reserves.start();
    }

    private void close() {
        running.close();
        poller.close();
        reserves.close();
        reader.close();
        connections.refusals(null);
        tagSets.enforcement(null);
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            server.unregisterMBean(new ObjectName(NAME));
        } catch (JMException error) {
            journal.warn("The quota callback could not be removed from JMX: " + error);
        }
    }

    /**
     * Checks new settings.
     *
     * @throws ConfigException a TLS file can't be used, see {@link TlsFiles#of}.
     */
    synchronized void check(Settings newSettings) {
        // If a file in use has been deleted, other settings can still be changed.
        if (newSettings.enabled && newSettings.hasTlsFiles() && !isInUse(newSettings)) {
            TlsFiles.of(newSettings);
        }
    }

    /** Adopts new settings, which were checked. */
    synchronized void adopt(Settings newSettings) {
        URI before = settings.url();
        List<SidecarClient> clients = clients(newSettings);
        writers.clear();
        settings = newSettings.alsoExcluding(writers::has);
        quotas.settingsChanged();
        changes.incrementAndGet();
        reader.adopt(newSettings, clients, before.equals(newSettings.url()));
    }

    /** A number that changes with the settings. */
    long changes() {
        return changes.get();
    }

    /** One client for each sidecar, the broker's own first. */
    private List<SidecarClient> clients(Settings settings) {
        settings.contradictions().forEach(each -> journal.warn("The quota callback: " + each));
        if (settings.warning() != null) {
            journal.warn(settings.warning());
        }
        Callable<SSLSocketFactory> trusted = trusted(settings);
        // Switched off, no sidecar is asked: the reader does not use the own client, and there are no
        // others.
        List<URI> asked = settings.enabled ? settings.urls : List.of(settings.url());
        return asked.stream()
                .map(url ->
                        new SidecarClient(
                                url, trusted, settings.tokenFile, clocks, SidecarClient.TIMEOUT_MS))
                .collect(Collectors.toUnmodifiableList());
    }

    /** What makes sockets with the configured files. */
    private Callable<SSLSocketFactory> trusted(Settings settings) {
        if (!settings.hasTlsFiles() || !settings.enabled) {
            // Switched off, nothing is sent, and the files need not exist.
            return () -> (SSLSocketFactory) SSLSocketFactory.getDefault();
        }
        if (!isInUse(settings)) {
            tlsFiles = new TlsFiles(settings, journal);
        }
        return tlsFiles;
    }

    private boolean isInUse(Settings settings) {
        return tlsFiles != null && tlsFiles.areOf(settings);
    }

    /** Applies factors; only the reader's thread calls it. */
    void apply(Factors factors) {
        // Below the stop line, if nothing can be refused, pauses are as long as for a full volume.
        boolean pausesOnly = factors.admitsNobody && settings.refuses && !connections.hasAuthorizer();
        Factors inForce = scoped(factors);
        enforce(pausesOnly ? inForce.urgent() : inForce);
        refusals.applied();
        boolean emergency = figures.isEmergency();
        if (emergency && !wasEmergency) {
            Leak leak = enforcement.figures().factors.leak;
            journal.warn(
                    String.format(
                            Locale.ROOT,
                            "A volume fills although producers are throttled: the share %s of"
                                    + " the leak budget may pass, and pauses may last up to %d ms",
                            leak.share, leak.pauseMaxMs(settings)));
        } else if (!emergency && wasEmergency) {
            journal.info("Pauses last at most " + settings.pauseMaxMs + " ms again");
        }
        wasEmergency = emergency;
        if (connections.problem() != null) {
            enforcement.faults().found(Faults.Kind.NOT_REFUSED, connections.problem());
        }
        logFaults();
    }

    /** Notes the log dirs whose reads hang; an empty set ends the fault. */
    void hanging(Set<String> logDirs) {
        if (logDirs.isEmpty()) {
            enforcement.faults().gone(Faults.Kind.DISK_HANGS);
        } else {
            String detail = "reads of " + String.join(", ", logDirs) + " do not return";
            enforcement.faults().found(Faults.Kind.DISK_HANGS, detail);
        }
        logFaults();
    }

    private void logFaults() {
        enforcement.faults().report((fault, detail) ->
                journal.warn(
                        "The quota callback does not throttle all clients as it should ("
                                + fault + ": " + detail + "). " + fault.advice));
    }

    /**
     * Applies factors. Users with a factor of their own get their own tags before that. They keep these
     * tags until the ramp after their release is over.
     */
    void enforce(Factors factors) {
        Set<String> users = new HashSet<>(enforcement.throttledUsers());
        factors.users.keySet().forEach(user -> users.add(Sanitized.of(user)));
        quotas.throttledUsers(users);
        enforcement.apply(factors);
        quotas.throttledUsers(enforcement.throttledUsers());
    }

    /** Only the authorizer sees topics: without it, a factor is for all requests. */
    private Factors scoped(Factors factors) {
        boolean isBlind = !factors.scope.isAll() && !connections.hasAuthorizer();
        if (isBlind && !wasBlind) {
            journal.warn(
                    "All producers are throttled, even those that do not write to a full volume. To throttle"
                            + " only those that do, set authorizer.class.name="
                            + SidecarAuthorizer.class.getName());
        }
        wasBlind = isBlind;
        Factors known = isBlind ? factors.of(Scope.ALL) : factors;
        // Without topics, a budget of one owner would throttle all of them.
        return connections.hasAuthorizer() ? known : known.with(Budgets.NONE);
    }

    /** The headers of a request to the sidecar: the reader makes one every few seconds. */
    Map<String, String> headers() {
        enforcement.noteClock();
        return figures.headers();
    }
}
