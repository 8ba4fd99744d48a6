package throttlesidecar;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.net.URL;
import org.junit.jupiter.api.Test;

/** What holds for all classes of the jar. */
class PackagesTest {
    private static JavaClasses classes() {
        URL jar = SidecarQuotaCallback.class.getProtectionDomain().getCodeSource().getLocation();
        return new ClassFileImporter().importUrl(jar);
    }

    /** Packages depend on each other in one direction only. */
    @Test
    void thereAreNoCycles() {
        slices().matching("(**)").should().beFreeOfCycles().check(classes());
    }

    /** Texts name their locale: some locales have digits that no sidecar can read. */
    @Test
    void nothingDependsOnTheLocale() {
        noClasses().should().callMethod(String.class, "format", String.class, Object[].class)
                .check(classes());
    }
}
